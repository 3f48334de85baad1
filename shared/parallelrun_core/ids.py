"""Names and ids: short, sortable by time where that helps, and safe in a path, a key and a URL."""

from __future__ import annotations

import hashlib
import re
import secrets
import time
from typing import Final

from parallelrun_core.errors import InvalidInput, NotFound
from parallelrun_core.names.patterns import JOB

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"  # Crockford's base 32: no letter looks like a digit
JOB_ID: Final = JOB.strip("^$")
_RANDOM_DIGITS: Final = 10
_JOB_ID = re.compile(JOB_ID)
_NODE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")


def _base32(number: int, digits: int) -> str:
    return "".join(_ALPHABET[(number >> (5 * shift)) & 31] for shift in reversed(range(digits)))


def new_job_id() -> str:
    """A new job id; later ones sort after earlier ones."""
    return f"job_{_base32(time.time_ns() // 1_000_000, 10)}{_base32(secrets.randbits(50), _RANDOM_DIGITS)}"


def job_id_from(job_id: str, *names: str) -> str:
    """The id of a job that another one starts: the same for the same names, so nobody can start it twice.

    It sorts with the job that starts it.
    """
    digest = hashlib.sha256("\0".join((job_id, *names)).encode()).digest()
    return job_id[:-_RANDOM_DIGITS] + _base32(int.from_bytes(digest[:8], "big"), _RANDOM_DIGITS)


def is_from(job_id: str, other: str) -> bool:
    """Return whether a job may have been started by this other one, as far as their ids tell."""
    return job_id != other and job_id[:-_RANDOM_DIGITS] == other[:-_RANDOM_DIGITS]


def job_id_at(moment_s: float, *names: str) -> str:
    """The id of a job that nobody submits: the same for the same moment and names, so nobody can start it twice.

    It sorts as if it had been submitted then, in seconds since the epoch.
    """
    digest = hashlib.sha256("\0".join(names).encode()).digest()
    return f"job_{_base32(round(moment_s * 1000), 10)}{_base32(int.from_bytes(digest[:8], 'big'), _RANDOM_DIGITS)}"


def is_job_id(text: str) -> bool:
    """Return whether this has the form of a job's id."""
    return _JOB_ID.fullmatch(text) is not None


def checked_job_id(text: str) -> str:
    """The id, if it has the form of one.

    Raises:
        NotFound: it doesn't, so there is no such job.
    """
    if not is_job_id(text):
        raise NotFound(f"There is no job {text[:80]!r}.")
    return text


def checked_node(text: str) -> str:
    """The node's name, if it is safe in a file name and a key.

    Raises:
        InvalidInput: it isn't.
    """
    if not _NODE.fullmatch(text):
        raise InvalidInput.at("node", f"{text[:80]!r} is not a node name", "letters, digits, '.', '_', '-', at most 63")
    return text


def new_session(node: str) -> str:
    """The id of one run of a node's agent."""
    return f"{node}-{secrets.token_hex(4)}"
