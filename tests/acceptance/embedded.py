"""The command line, and a cluster that it has started with `parallelrun up`, as a user meets them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

from parallelrun_core.store import keys
from parallelrun_core.store.connection import connect
from tests.acceptance.http_user import HttpUser
from tests.cluster import AOF
from tests.redis_server import RedisServer

if TYPE_CHECKING:
    from redis import Redis

_COMMAND_S = 100


@dataclass(frozen=True)
class Said:
    """What a command answered."""

    code: int
    out: str
    err: str


def parallelrun(*arguments: str | Path, cwd: Path, **environment: str) -> Said:
    """Run the command `parallelrun` to its end."""
    done = subprocess.run(
        [sys.executable, "-P", "-m", "parallelrun", *map(str, arguments)],
        cwd=cwd, env=_clean(environment), capture_output=True, text=True, timeout=_COMMAND_S, check=False,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip
    return Said(done.returncode, done.stdout, done.stderr)


class Embedded:
    """`parallelrun up`, with a Redis server that the tests can look into; `with` it."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.root = home / "cluster" / "data"
        """The folder that the services share."""
        self._server = RedisServer(*AOF)

    def __enter__(self) -> Self:
        self._server.start()
        self.redis: Redis = connect(self._server.url)
        said = self.command("up", "--port", "0", "--nodes", "2", "--processes", "1", "--root", self.home / "cluster")
        assert said.code == 0, said
        self.url = said.out.strip()
        known = json.loads((self.home / "parallelrun" / "cluster.json").read_text())
        self.token: str = known["token"]
        return self

    def __exit__(self, *_: object) -> None:
        said = self.command("down")
        self.redis.close()
        self._server.__exit__()
        assert said.code == 0, said

    def command(self, *arguments: str | Path) -> Said:
        """Run a command that finds this cluster by itself."""
        return parallelrun(*arguments, cwd=self.home, XDG_STATE_HOME=str(self.home), REDIS_URL=self._server.url)

    def user(self) -> HttpUser:
        """Somebody who knows address and token."""
        return HttpUser(self.url, self.token)

    def traces(self) -> set[str]:
        """All that jobs have left: folders, snapshots of code, keys."""
        found = {key.decode(errors="replace") for key in self.redis.scan_iter(count=1000)} - {keys.KNOWN}
        return {
            *(str(path) for folder in ("jobs", "code") for path in (self.root / folder).glob("*")),
            *(key for key in found if key.startswith(("parallelrun:", "rq:job:", "rq:queue:")) and ":nodes" not in key),
        }


def _clean(more: dict[str, str]) -> dict[str, str]:
    own = {name: value for name, value in os.environ.items() if not name.startswith("PARALLELRUN_")}
    own.pop("REDIS_URL", None)
    return {**own, **more}
