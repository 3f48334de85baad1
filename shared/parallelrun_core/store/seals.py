"""Seals: how the leader knows that what it reads on Redis was reported by a session of its job.

Whoever can write to Redis could add an outcome to a job's stream. So each session draws a key, which only agents,
concatenators and leaders can read: it is in the job folder. What a session reports carries its seal, made with that
key; without a true one, the leader takes no note of it.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable
from hashlib import blake2b, sha256
from typing import Final, Literal

Kind = Literal["r", "init_failed", "phases", "whole_failures", "spent", "concatenated"]
"""The field of a stream entry that is sealed: the seal of one kind is none of another."""

_SIZE: Final = 16
_PERSONALIZATIONS: Final[dict[Kind, bytes]] = {
    "r": b"outcomes",
    "init_failed": b"init_failed",
    "phases": b"phases",
    "whole_failures": b"whole_failures",
    "spent": b"spent",
    "concatenated": b"concatenated",
}
"""BLAKE2's personalization for each kind, which makes their tags differ. `r` is the field with outcomes."""


def _tag(key: bytes, kind: Kind, payload: bytes) -> bytes:
    # Processors have instructions for SHA-256, and this keyed hash is the quickest one of a few bytes.
    return blake2b(sha256(payload).digest(), key=key, digest_size=_SIZE, person=_PERSONALIZATIONS[kind]).digest()


class Seal:
    """The seal of one session on all that it reports: its name, and a tag that only its key can make."""

    def __init__(self, session: str, key: bytes) -> None:
        self._name = session.encode() + b"/"
        self._key = key

    def on(self, kind: Kind, payload: bytes) -> bytes:
        return self._name + _tag(self._key, kind, payload)


class Seals:
    """Tells true seals of one job from others.

    Args:
        key_of: the key of a session; None if the job has no such session. Called once for each that it has.
    """

    def __init__(self, key_of: Callable[[str], bytes | None]) -> None:
        self._key_of = key_of
        self._keys: dict[bytes, bytes] = {}

    def objection(self, kind: Kind, payload: bytes, seal: bytes) -> str:
        """Why this isn't believed; empty: a session of this job has reported it, and nobody has altered it since."""
        name, slash, tag = seal.partition(b"/")
        if not slash:
            return "it has no seal"
        key = self._keys.get(name) or self._key(name)
        if key is None:
            return "the job has no such session"
        if not hmac.compare_digest(_tag(key, kind, payload), tag):
            return "its seal is not that of the session"
        return ""

    def _key(self, name: bytes) -> bytes | None:
        key = self._key_of(name.decode(errors="replace"))
        if key is not None:
            self._keys[name] = key
        return key
