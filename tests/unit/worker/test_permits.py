"""Permits, on the side of a script: what it may ask for, and what becomes of those that wait."""

from __future__ import annotations

import socket
import time
from email.utils import formatdate
from threading import Thread
from types import SimpleNamespace
from typing import Any

import pytest

from parallelrun.script import PermitRefused, limit
from parallelrun_worker.script_api.permits import Permit, PermitClient


@pytest.mark.parametrize("tokens", ["many", None, -1, float("nan"), float("inf"), 10**13, [5]])
def test_permit_for_what_is_no_number_of_tokens_is_refused_in_words(tokens: Any) -> None:
    with pytest.raises(ValueError, match=r"takes a number of tokens from 0 to 1,000,000,000,000, not"):
        limit("service", tokens=tokens)


@pytest.mark.parametrize(
    "after, seconds",
    [("2", 2.0), ("0.5", 0.5), ("-3", 0.0), ("1e300", 3600.0), ("inf", 1.0), ("nan", 1.0), ("soon", 1.0), (None, 1.0)],
)
def test_permit_waits_as_long_as_the_service_says_but_an_hour_at_most(after: str | None, seconds: float) -> None:
    with limit("service") as permit:
        assert permit.retry_after(after) == seconds
        answer = SimpleNamespace(headers={} if after is None else {"retry-after": after})
        assert permit.retry_after(answer) == seconds
        assert permit.retry_after(formatdate(time.time() + 10**7, usegmt=True)) == 3600.0


def test_permit_that_nobody_gives_any_more_is_refused() -> None:
    ours, theirs = socket.socketpair()
    client = PermitClient(theirs.detach())
    refused: list[str] = []

    def wait() -> None:
        with pytest.raises(PermitRefused, match="agent gives out permits no more") as caught, Permit("x", 0, client):
            pass
        refused.append(str(caught.value))

    waiting = Thread(target=wait)
    waiting.start()
    assert b'"take"' in ours.recv(4096)
    ours.close()
    waiting.join(timeout=60)
    assert len(refused) == 1
    with pytest.raises(PermitRefused), Permit("x", 0, client):
        pass
