"""What the servers of object stores have in common."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import ClassVar, Protocol, Self

import pytest

from tests.redis_server import with_this_process

_ENVIRONMENTS = Path(__file__).parents[2] / ".environments"
"""Where `make test-all` installs them."""
PROGRAMS = _ENVIRONMENTS / "object-servers"
AZURITE = _ENVIRONMENTS / "azurite"
_READY_S = 60
_MOST_ATTEMPTS = 5
BUCKET = "parallelrun-tests"
"""There once the server is ready."""


def require_programs(folder: Path = PROGRAMS) -> None:
    """Skip the test if the servers in a folder aren't installed; in CI, that is a failure."""
    if not (folder / "ready").exists():
        reason = "the object stores aren't installed: `make test-all` does it (Azure's needs npm)"
        pytest.fail(reason) if os.environ.get("CI") else pytest.skip(reason)


class Outside(Protocol):
    """What is in the bucket, seen and changed without the code that is tested."""

    def put(self, key: str, content: bytes) -> str:
        """Returns its ETag."""
        ...

    def content(self, key: str) -> bytes: ...

    def keys(self, prefix: str) -> list[str]: ...

    def close(self) -> None: ...


class ObjectServer:
    """A server of a store. Use it in a `with` statement.

    Attributes:
        environment: what its clients need to find in theirs.
        bucket_url: of `BUCKET`, without a '/' at its end.
        wrong: what clients with wrong credentials have in their environment instead; empty if it believes everybody.
    """

    bucket_url = f"s3://{BUCKET}"
    wrong: ClassVar[dict[str, str]] = {}

    def __init__(self) -> None:
        self.home = Path(tempfile.mkdtemp(prefix="pr-store-"))
        self._attempts = 0
        self._take_ports()
        self._process: subprocess.Popen[bytes] | None = None

    def _take_ports(self) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.environment = self.environment_at(self.url)

    def environment_at(self, url: str) -> dict[str, str]:
        """What clients need in order to find it at another address, such as that of a proxy."""
        raise NotImplementedError

    def require(self) -> None:
        """See `require_programs`."""
        require_programs()

    def command(self) -> list[str]:
        """What starts it in the foreground."""
        raise NotImplementedError

    def make_bucket(self) -> None:
        """Create `BUCKET`; raises whatever shows that the server isn't ready."""
        raise NotImplementedError

    def outside(self) -> Outside:
        """A client that has nothing in common with the code that is tested."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        while not self._starts():
            self._stop()
            self._take_ports()  # somebody else was faster with one of the others
        return self

    def _starts(self) -> bool:
        with (self.home / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [*with_this_process(), *self.command()], cwd=self.home, stdout=log, stderr=log,
                env={**os.environ, "HOME": str(self.home)},
            )  # fmt: skip
        deadline = time.monotonic() + _READY_S
        while not self.is_ready():
            self._attempts += self._process.poll() is not None
            if self._attempts > _MOST_ATTEMPTS or time.monotonic() > deadline:
                raise RuntimeError(f"the store didn't start: {(self.home / 'log').read_text()[-2000:]}")
            if self._process.poll() is not None:
                return False
            time.sleep(0.05)  # a server gives no sign when it is ready
        return True

    @property
    def pid(self) -> int:
        """Of its process, within the `with` statement."""
        assert self._process is not None
        return self._process.pid

    def _stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def __exit__(self, *_: object) -> None:
        self._stop()
        shutil.rmtree(self.home, ignore_errors=True)

    def is_ready(self) -> bool:
        """Whether it takes a bucket."""
        try:
            self.make_bucket()
        except Exception:  # each client has kinds of its own for the ways in which a server isn't there
            return False
        return True


def free_port() -> int:
    """One that nobody listens on now."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])
