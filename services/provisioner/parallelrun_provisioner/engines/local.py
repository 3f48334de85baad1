"""Processes of the provisioner's own machine as nodes: agents that outlive it, and are found again by their files.

Below the root folder, `nodes/<compute>/<launch>.node` is locked by the agent itself for as long as it lives, and has
its process id: so a provisioner that begins anew knows who lives, whatever process has got an old number since.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from parallelrun_core.computes.kinds.local import LocalCompute
from parallelrun_core.computes.launch import Launch
from parallelrun_core.layout import PRIVATE_FILE, PRIVATE_FOLDER, listed
from parallelrun_provisioner.engines.interface import (
    EngineEnvironment,
    EngineNode,
    LaunchRefused,
    NodeStanding,
    end_of_log,
)

_PATIENCE_S: Final = 60.0
"""How long an agent may take to end after SIGTERM."""
_OWN: Final = (
    "PARALLELRUN_REDIS_SECRET", "PARALLELRUN_REDIS_SECRET_FILE", "PARALLELRUN_AGENT_SECRET",
    "PARALLELRUN_AGENT_SECRET_FILE", "PARALLELRUN_NODE_REDIS_URL", "PARALLELRUN_HEALTH_PORT",
    "PARALLELRUN_NODE_ALONE_SECONDS", "PARALLELRUN_KINDS", "PARALLELRUN_COMPUTES_KEY", "PARALLELRUN_COMPUTES_KEY_FILE",
)  # fmt: skip
"""Settings of the provisioner that are not for its nodes."""
_SCRIPT: Final = 'echo $$ >"$0" && exec "$@"'
"""The process writes its id itself, and becomes the agent: it is never there without being known."""


class LocalEngine:
    def __init__(self, compute: LocalCompute, engine_environment: EngineEnvironment) -> None:
        self._compute = compute
        self._engine_env = engine_environment
        self._folder = engine_environment.root / "nodes" / compute.name
        self._children: dict[str, subprocess.Popen[bytes]] = {}
        """Those that this provisioner has started: it must see them end."""
        self._stop_sent_at: dict[str, float] = {}

    def plan(self, launch: Launch) -> str:
        """The command line, after the settings in its environment."""
        settings = [f"{name}={value}" for name, value in sorted(launch.environment.items())]
        return "\n".join([*settings, " ".join(["parallelrun-agent", *self._arguments(launch)])]) + "\n"

    def launch(self, launch: Launch) -> None:
        try:
            self._folder.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
        except OSError as error:
            raise LaunchRefused(f"{self._folder} can't be written: {error.strerror}") from error
        try:
            file = os.open(self._file(launch.id), os.O_RDWR | os.O_CREAT | os.O_EXCL, PRIVATE_FILE)
        except FileExistsError:
            return
        except OSError as error:
            raise LaunchRefused(f"{self._folder} can't be written: {error.strerror}") from error
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            command = [sys.executable, "-m", "parallelrun_core.service.launch", "parallelrun_agent.main"]
            with self._log(launch.id).open("ab") as log:
                self._children[launch.id] = subprocess.Popen(
                    ["/bin/sh", "-c", _SCRIPT, self._file(launch.id), *command, *self._arguments(launch)],
                    env=self._environment(launch),
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    pass_fds=[file],
                    start_new_session=True,
                )
        except OSError as error:
            self._file(launch.id).unlink(missing_ok=True)
            raise LaunchRefused(f"no process can be started: {error.strerror}") from error
        finally:
            os.close(file)  # the agent has it now, and its lock

    def nodes(self) -> Sequence[EngineNode]:
        for each, child in list(self._children.items()):
            if child.poll() is not None and not self._file(each).exists():
                del self._children[each]
        return [self._node(self._folder / name) for name in sorted(listed(self._folder)) if name.endswith(".node")]

    def terminate(self, launch_ids: Collection[str]) -> None:
        now = time.monotonic()
        for each in launch_ids:
            path = self._file(each)
            process = _living(path)
            if process is None:
                self._forget(path)
                continue
            is_overdue = now - self._stop_sent_at.setdefault(each, now) >= _PATIENCE_S
            with suppress(ProcessLookupError):
                if process:
                    os.killpg(process, signal.SIGKILL) if is_overdue else os.kill(process, signal.SIGTERM)

    def close(self) -> None:
        """The agents go on."""

    def _file(self, each: str) -> Path:
        return self._folder / f"{each}.node"

    def _log(self, each: str) -> Path:
        return self._folder / f"{each}.log"

    def _arguments(self, launch: Launch) -> list[str]:
        return [*launch.arguments, "--work-dir", str(_work_dir(launch.id))]

    def _environment(self, launch: Launch) -> dict[str, str]:
        inherited = {name: value for name, value in os.environ.items() if name not in _OWN}
        agent_secret = self._engine_env.agent_secret
        secret = {"PARALLELRUN_REDIS_SECRET": agent_secret} if agent_secret else {}
        return {**inherited, **launch.environment, **secret}

    def _node(self, path: Path) -> EngineNode:
        each = path.stem
        process = _living(path)
        if process is not None:
            return EngineNode(launch_id=each, standing=NodeStanding.RUNNING if process else NodeStanding.PENDING)
        child = self._children.get(each)
        code = child.poll() if child is not None else None
        return EngineNode(
            launch_id=each,
            standing=NodeStanding.ENDED,
            exit_code=code,
            words=end_of_log(self._log(each)) if code else "",
        )

    def _forget(self, path: Path) -> None:
        """Remove what is left of a node that has ended."""
        each = path.stem
        self._stop_sent_at.pop(each, None)
        shutil.rmtree(_work_dir(each), ignore_errors=True)
        for file in (self._log(each), path):
            file.unlink(missing_ok=True)


def _work_dir(each: str) -> Path:
    return Path(tempfile.gettempdir()) / f"parallelrun-{os.getuid()}-{each}"


def _living(path: Path) -> int | None:
    """The process that holds the lock of a file; 0: it hasn't said its id yet; None: nobody holds it."""
    try:
        file = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        text = path.read_text(encoding="ascii", errors="replace").strip()
        return int(text) if text.isdecimal() else 0
    finally:
        os.close(file)
    return None
