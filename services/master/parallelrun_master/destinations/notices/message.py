"""The content of a webhook, and how it is signed, as https://www.standardwebhooks.com describes, whose libraries check
it.

Pure: the same end gives the same body, however often it is sent.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import json
from hashlib import sha256
from typing import Final

import msgspec

from parallelrun_core.answers.answer import rfc3339
from parallelrun_core.folder.records import JobRecord, JobResult

_PREFIX: Final = "whsec_"
_MOST_WARNINGS: Final = 20


class KeyUnusable(Exception):
    """A key is no key; says what to do."""


def notice_id(job_id: str, generation: int) -> str:
    """Return the id of every request about one end of a job: receivers know by it what they have seen."""
    return f"{job_id}.{generation}"


def body(record: JobRecord, result: JobResult, generation: int) -> bytes:
    failure = result.failure
    fields = {
        "type": f"job.{result.state}",
        "timestamp": _time(result.ended),
        "data": {
            "job_id": record.job_id,
            "name": record.spec.get("name", ""),
            "state": result.state,
            "generation": generation,
            "submitted": _time(record.submitted),
            "started": _time(result.started),
            "ended": _time(result.ended),
            "progress": msgspec.to_builtins(result.progress),
            "failure": {"code": failure.code, "summary": failure.summary} if failure else None,
            "warnings": result.warnings[:_MOST_WARNINGS],
        },
    }
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode()


def headers(name: str, sent_at: int, content: bytes, key: bytes | None) -> dict[str, str]:
    """The headers of a request, with a signature if there is a key.

    Args:
        sent_at: seconds since the epoch; receivers refuse what is old, so that nobody can send it again later.
    """
    fields = {
        "Content-Type": "application/json",
        "User-Agent": "parallelrun",
        "webhook-id": name,
        "webhook-timestamp": str(sent_at),
    }
    if key is not None:
        signature = hmac.digest(key, b".".join([name.encode(), str(sent_at).encode(), content]), sha256)
        fields["webhook-signature"] = f"v1,{base64.b64encode(signature).decode()}"
    return fields


def key_of(secret: bytes) -> bytes:
    """The key that a file of secrets holds: its text without the line break at its end, or `whsec_` and base64.

    Raises:
        KeyUnusable: it is empty, or not base64 after `whsec_`.
    """
    text = secret.removesuffix(b"\n").removesuffix(b"\r")
    if text.startswith(_PREFIX.encode()):
        try:
            text = base64.b64decode(text.removeprefix(_PREFIX.encode()), validate=True)
        except binascii.Error as error:
            raise KeyUnusable(f"what follows {_PREFIX} must be base64") from error
    if not text:
        raise KeyUnusable("it is empty")
    return text


def _time(seconds: float | None) -> str | None:
    return rfc3339(seconds) if seconds else None
