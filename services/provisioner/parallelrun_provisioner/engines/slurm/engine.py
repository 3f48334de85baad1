"""Launches, lists and ends nodes that are jobs of Slurm."""

from __future__ import annotations

import os
import shlex
import sys
import time
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

from parallelrun_core.computes.kinds.slurm import SlurmCompute
from parallelrun_core.computes.launch import Launch
from parallelrun_core.durable_files import replace_file
from parallelrun_core.layout import PRIVATE_FILE, PRIVATE_FOLDER
from parallelrun_provisioner.engines.interface import (
    EngineEnvironment,
    EngineError,
    EngineNode,
    LaunchRefused,
    NodeStanding,
    end_of_log,
)
from parallelrun_provisioner.engines.slurm import batch
from parallelrun_provisioner.engines.slurm.commands import SlurmCommandFailed, run
from parallelrun_provisioner.engines.slurm.listing import FORMAT, TIMES, SlurmJob, jobs_in, nodes_of
from parallelrun_provisioner.engines.slurm.words import FAILED, may_pass

_PATIENCE_S: Final = 60.0
"""How long an agent may take to end after SIGTERM; then Slurm ends all that is in its job."""
_AT_ONCE: Final = 200
_LOGS_KEPT_S: Final = 7 * 86_400.0


class SlurmEngine:
    """An engine whose nodes are batch jobs: by sbatch, squeue and scancel, as the user that the provisioner is."""

    def __init__(self, compute: SlurmCompute, engine_environment: EngineEnvironment) -> None:
        self._compute = compute
        self._engine_env = engine_environment
        self._mark = batch.mark(engine_environment.cluster, compute.name)
        self._folder = engine_environment.root / "nodes" / compute.name
        self._stop_sent_at: dict[int, float] = {}
        """When a job was told to end, for as long as it is there."""
        self._logs: dict[str, str] = {}
        """The end of the log of each node that has failed and is listed still."""

    def plan(self, launch: Launch) -> str:
        """The command, and the script that it reads."""
        return f"{shlex.join(['sbatch', *self._arguments(launch)])} <<'END'\n{self._script(launch)}END\n"

    def launch(self, launch: Launch) -> None:
        """Submit a job, unless there is one of this name."""
        listed = {job.name for job in self._jobs()}
        if launch.id in listed:
            return
        try:
            self._prepare(listed)
        except OSError as error:
            raise EngineError(f"{self._folder} can't be written: {error.strerror}") from error
        try:
            run("sbatch", self._arguments(launch), stdin=self._script(launch))
        except SlurmCommandFailed as error:
            if may_pass(str(error)):
                raise
            raise LaunchRefused(str(error)) from error

    def nodes(self) -> Sequence[EngineNode]:
        jobs = self._jobs()
        live = {job.id for job in jobs if job.standing is not NodeStanding.ENDED}
        self._stop_sent_at = {number: at for number, at in self._stop_sent_at.items() if number in live}
        failed = {job.name for job in jobs if job.state in FAILED}
        self._logs = {name: self._logs.get(name) or end_of_log(self._folder / f"{name}.log") for name in failed}
        return [self._with_log(node) for node in nodes_of(jobs)]

    def terminate(self, launch_ids: Collection[str]) -> None:
        """Tell the agents to end; what has not started is cancelled, and so is what has not ended after a minute."""
        if not launch_ids:
            return
        now = time.monotonic()
        signalled, canceled = [], []
        for job in self._jobs(launch_ids):
            if job.standing is NodeStanding.RUNNING and now - self._stop_sent_at.setdefault(job.id, now) < _PATIENCE_S:
                signalled.append(str(job.id))
            elif job.standing is not NodeStanding.ENDED:
                canceled.append(str(job.id))
        # The agent alone: Slurm would send its signal to the workers, too, in the middle of a mini-batch.
        self._cancel(signalled, "--batch", "--signal=TERM")
        self._cancel(canceled)

    def close(self) -> None:
        """There is nothing open."""

    def _arguments(self, launch: Launch) -> list[str]:
        return batch.arguments(self._compute, launch, cluster=self._engine_env.cluster, folder=self._folder)

    def _script(self, launch: Launch) -> str:
        settings = {
            "PARALLELRUN_REDIS_URL": self._compute.redis_url or self._engine_env.redis_url,
            "PARALLELRUN_ROOT": str(self._engine_env.root),
        }
        if self._engine_env.agent_secret:
            settings["PARALLELRUN_REDIS_SECRET_FILE"] = str(self._secret)
        return batch.script(self._compute, launch, python=sys.executable, environment=settings)

    @property
    def _secret(self) -> Path:
        return self._folder / "agent.secret"

    def _prepare(self, listed: Collection[str]) -> None:
        """Make the folder of the nodes' logs, and the file with the agents' password; forget logs of long ago, but for
        those of jobs that are listed still."""
        self._folder.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
        if self._engine_env.agent_secret:
            text = f"{self._engine_env.agent_secret}\n".encode()
            if not self._secret.exists() or self._secret.read_bytes() != text:
                replace_file(self._secret, text, mode=PRIVATE_FILE)
        oldest = time.time() - _LOGS_KEPT_S
        for log in self._folder.glob("*.log"):
            with suppress(FileNotFoundError):  # somebody else has removed it
                if log.stem not in listed and log.stat().st_mtime < oldest:
                    log.unlink()

    def _jobs(self, names: Collection[str] = ()) -> list[SlurmJob]:
        chosen = frozenset(names)
        arguments = ["--noheader", "--states=all", f"--user={os.getuid()}", f"--format={FORMAT}"]
        if 0 < len(chosen) <= _AT_ONCE:
            arguments.append(f"--name={','.join(sorted(chosen))}")
        jobs = jobs_in(run("squeue", arguments, variables=TIMES), mark=self._mark, compute=self._compute.name)
        return [job for job in jobs if not chosen or job.name in chosen]

    def _cancel(self, ids: Sequence[str], *how: str) -> None:
        for begin in range(0, len(ids), _AT_ONCE):
            run("scancel", ["--quiet", *how, *ids[begin : begin + _AT_ONCE]])

    def _with_log(self, node: EngineNode) -> EngineNode:
        end = self._logs.get(node.launch_id, "") if node.standing is NodeStanding.ENDED else ""
        return replace(node, words=f"{node.words}; the end of its log: {end}") if end else node
