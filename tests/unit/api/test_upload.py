"""A request with a job, as it is read."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from starlette.requests import Request

from parallelrun_api.submission.upload import receive_upload
from parallelrun_core.errors import InvalidInput


def test_a_key_that_is_given_twice_in_json_is_refused(tmp_path: Path) -> None:
    body = b'{"entry_script": "main.py", "inputs": {"data": "/a", "more": "/b", "data": "/c"}}'

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    request = Request({"type": "http", "headers": [(b"content-type", b"application/json")]}, receive)
    with pytest.raises(InvalidInput, match="not readable as JSON: the key 'data' is given twice"):
        asyncio.run(receive_upload(request, max_bytes=1 << 20, folder=tmp_path)).parsed()
