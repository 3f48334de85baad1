"""What is asked of an installation, on whichever engine: jobs of whom it admits, an upgrade, and to leave nothing."""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass
from typing import Any, Final, Protocol

from tests.acceptance.http_user import HttpUser, zip_of

OPERATOR: Final = "olga"
"""Whose token may define computes."""
_OTHER: Final = "otto"
_TOKENS: Final = {name: secrets.token_hex(24) for name in (OPERATOR, _OTHER)}
TOKENS: Final = "".join(f"{name} {token}\n" for name, token in _TOKENS.items())
"""The file of tokens with which it is installed."""
_POOL: Final = "pool"
_COUNT: Final = 4
_SCRIPT: Final = """
import os
try:
    from six import __version__ as version
except ImportError:
    version = "none"
def run(mini_batch):
    return [f"{os.path.basename(path)} {version}" for path in mini_batch]
"""
_GONE_S: Final = 60
_ENDS_S: Final = 180
"""A job, with nodes that have to come first, on a machine that has other work."""


class Installation(Protocol):
    """All services, as they are installed."""

    name: str

    def user(self, token: str = "") -> HttpUser:
        """A user with this token, or with the one of the installation itself."""

    def document(self) -> dict[str, Any]:
        """A compute of its engine."""

    def inputs(self, count: int) -> str:
        """A folder with that many inputs, as jobs name it."""

    def nodes(self) -> list[str]:
        """The nodes that the engine has."""

    def image(self) -> str:
        """An image of somebody else that jobs may name, with six 1.16.0 for its Python."""

    def upgrade(self) -> None:
        """Install it anew over itself."""

    def remove(self) -> None:
        """Uninstall it, with the commands of its page."""

    def left(self) -> list[str]:
        """What is there that wasn't before."""


@dataclass(frozen=True)
class Report:
    """What has become of an installation."""

    name: str
    job_s: float
    left: list[str]

    def __str__(self) -> str:
        return f"installed {self.name} job_s={self.job_s:.1f} upgraded=yes left={len(self.left)} {' '.join(self.left)}"


def tried(there: Installation) -> Report:
    """Run a job on nodes of the engine, upgrade, run one on an image, and uninstall while a node is there."""
    with there.user(_TOKENS[_OTHER]) as other:
        other.wait_until_ready()
        refused = other.client.put(f"/v1/computes/{_POOL}", json=there.document())
        assert refused.status_code == 403, refused.text
    with there.user(_TOKENS[OPERATOR]) as operator:
        operator.client.put(f"/v1/computes/{_POOL}", json=there.document()).raise_for_status()
        asked = time.monotonic()
        _run(operator, there)
        job_s = time.monotonic() - asked
    there.upgrade()
    with there.user() as user:
        user.wait_until_ready()
        assert _run(user, there, environment={"image": there.image()}) == {"1.16.0"}
    there.remove()
    deadline = time.monotonic() + _GONE_S
    while (left := [*there.left(), *there.nodes()]) and time.monotonic() < deadline:
        time.sleep(0.2)  # an engine that is polled gives no sign
    return Report(there.name, job_s, left)


def _run(user: HttpUser, there: Installation, **fields: Any) -> set[str]:
    """Run a job, which must have a row for each file; returns the versions of six that it has found."""
    spec = {"entry_script": "entry.py", "inputs": there.inputs(_COUNT), "compute": _POOL, **fields}
    job = user.submit(spec, zip_of({"entry.py": _SCRIPT}))
    user.completed(job, timeout_s=_ENDS_S)
    rows = [row.split() for row in user.download(job, "parallel_run_step.txt").decode().splitlines()]
    assert sorted(name for name, _ in rows) == [f"{number}.txt" for number in range(_COUNT)], rows
    return {version for _, version in rows}
