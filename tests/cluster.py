"""A whole cluster without the API, as real processes that a test can kill, pause and start again."""

from __future__ import annotations

import http.client
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Self

import psutil

from parallelrun.embedded.cluster import reserve_port
from parallelrun_core.code import snapshots
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.folder.records import JobRecord, JobResult
from parallelrun_core.ids import new_job_id
from parallelrun_core.intake.launching import launch
from parallelrun_core.layout import code_store
from parallelrun_core.pipelines.standing import standings
from parallelrun_core.spec import JobSpec, PipelineSpec
from parallelrun_core.storage.path_rule import Places
from parallelrun_core.store.connection import connect
from parallelrun_core.store.nodes import NodeRegistry
from parallelrun_core.store.registry import Registry
from parallelrun_core.store.roles import Role
from parallelrun_core.store.rq.wake import ask_for_leader
from tests.redis_server import SECRETS, RedisServer, with_this_process
from tests.security.as_user import command_for
from tests.service_template import ForkedService, can_be_forked, service_template
from tests.twins import sabotage

ROOT = Path(__file__).parents[1]
AOF = ("--appendonly", "yes", "--appendfsync", "everysec", "--maxmemory-policy", "noeviction")
_START_S = 120.0
"""Starting takes a second, and much longer where many tests start clusters at once."""


class Cluster:
    """Redis, a master, a concatenator and some agents. Use it in a `with` statement.

    Args:
        token: what the API asks for; empty: nothing.
        failpoints: where a process dies or a call fails (see `parallelrun_core.service.failpoints`).
        without: the mechanism that is disabled in every service (see `tests.twins.sabotage`).
        worker_uids: what the workers may be, if they are to be other users than their agents. For root only.
    """

    is_forked = True
    """Services are forked where that can't be told from a start by themselves, but from what /proc has of them."""

    def __init__(
        self,
        *,
        nodes: int = 1,
        slots: int = 2,
        token: str = "",
        lease_s: float = 8.0,
        leader_s: float = 5.0,
        failpoints: str = "",
        without: str = "",
        agent_flags: tuple[str, ...] = (),
        api: bool = False,
        redis_options: tuple[str, ...] = (),
        worker_uids: str = "",
    ) -> None:
        self._without = without
        self._launcher = ["-m", "parallelrun_core.service.launch"]
        if without:
            self._launcher = ["-m", "tests.twins.launch", without]
            with sabotage.without(without):
                pass  # a part that is gone is found here, and not by services that don't start
        self.home = Path(tempfile.mkdtemp(prefix="pr-cluster-", dir="/tmp" if worker_uids else None))
        self.root = self.home / "data"
        self.root.mkdir()
        if worker_uids:
            self.home.chmod(0o711)
            agent_flags = (*agent_flags, "--worker-uids", worker_uids)
        self.redis_server = RedisServer(*AOF, *redis_options)
        if without:
            with sabotage.without(without):
                self.redis_server.know_services()  # services may run the scripts that they have
        self.processes: dict[str, subprocess.Popen[bytes] | ForkedService] = {}
        self._commands: dict[str, list[str]] = {
            "master": ["parallelrun_master.main", "--leaders", "2"],
            "concatenator": ["parallelrun_concatenator.main", "--concatenators", "1"],
        }
        for number in range(nodes):
            node = f"node{number:03d}"
            self._commands[node] = [
                "parallelrun_agent.main", "--node", node, "--slots", str(slots),
                "--work-dir", str(self.home / "work" / node), *agent_flags,
            ]  # fmt: skip
        self._port = reserve_port(0) if api else None
        self.api_url = ""
        if self._port is not None:
            port = str(self._port.getsockname()[1])
            self.api_url = f"http://127.0.0.1:{port}"
            self._commands["api"] = ["parallelrun_api.main", "--port", port, *([] if token else ["--insecure"])]
        self.nodes = [f"node{number:03d}" for number in range(nodes)]
        self.environments: dict[str, dict[str, str]] = {"api": {"PARALLELRUN_TOKEN": token}} if token else {}
        """Additional environment variables of single services."""
        self.prefixes: dict[str, list[str]] = {name: command_for(0) for name in self.nodes} if worker_uids else {}
        """What the command lines of single services begin with, such as a command that runs them."""
        self._environment = {
            **os.environ,
            "PARALLELRUN_REDIS_URL": self.redis_server.url,
            "PARALLELRUN_ROOT": str(self.root),
            "PARALLELRUN_LEASE_SECONDS": str(lease_s),
            "PARALLELRUN_LEADER_SECONDS": str(leader_s),
            "PARALLELRUN_FAILPOINTS": failpoints,
        }

    def __enter__(self) -> Self:
        self.redis_server.start()
        self.redis = connect(self.redis_server.url)
        self.registry = Registry(self.redis)
        self.known_nodes = NodeRegistry(self.redis)
        for name in self._commands:
            self.start(name)
        self.until(self._has_agents, "the agents are there", _START_S)
        if self.api_url:
            self.wait_for_apis()
        return self

    def _has_agents(self) -> bool:
        return sum(alive for _, alive in self.known_nodes.all()) == len(self.nodes)

    def __exit__(self, kind: object, *_: object) -> None:
        for process in self.processes.values():
            process.send_signal(signal.SIGCONT)
            process.terminate()
        for process in self.processes.values():
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        if self._port is not None:
            self._port.close()
        self.redis.close()
        self.redis_server.__exit__()
        if kind is None:
            shutil.rmtree(self.home, ignore_errors=True)
        else:
            print(f"the cluster's files are kept in {self.home}")
            print("".join(self.log(name)[-3000:] for name in self._commands))

    def wait_for_apis(self, *urls: str) -> None:
        """Wait until these APIs answer, by default the cluster's own one, however busy the machine is."""
        for url in urls or (self.api_url,):
            self.until(partial(_answers, url), f"{url} answers", _START_S)

    # Processes

    def start(self, name: str) -> None:
        """Start a service, or start it again."""
        module, *flags = self._commands[name]
        secret = SECRETS[next((role for role in Role if name.startswith(role)), Role.AGENT)]
        environment = {
            **self._environment, "PARALLELRUN_REDIS_SECRET": secret, **self.environments.get(name, {}),
        }  # fmt: skip
        prefix = self.prefixes.get(name, [])
        with (self.home / f"{name}.log").open("ab") as log:
            if self.is_forked and not prefix and not self._without and can_be_forked(environment):
                self.processes[name] = service_template().start(module, flags, environment, log.fileno())
                return
            self.processes[name] = subprocess.Popen(
                [*prefix, *with_this_process(), sys.executable, *self._launcher, module, *flags],
                cwd=ROOT,
                env=environment,
                stdout=log,
                stderr=log,
            )

    def add(self, name: str, module: str, *flags: str) -> None:
        """Start one more service."""
        self._commands[name] = [module, *flags]
        self.start(name)

    def workers(self, node: str) -> list[psutil.Process]:
        """The processes that an agent has started, but for templates of workers."""
        return [child for child in psutil.Process(self.processes[node].pid).children() if _is_worker(child)]

    def leaders(self) -> list[psutil.Process]:
        """The processes that lead jobs: what the master's RQ workers have forked."""
        found = []
        with suppress(psutil.NoSuchProcess):
            for worker in psutil.Process(self.processes["master"].pid).children():
                with suppress(psutil.NoSuchProcess):  # it ended between the two calls
                    found += worker.children()
        return found

    def kill(self, name: str) -> None:
        """SIGKILL a service; its workers die with it."""
        self.processes[name].kill()
        self.processes[name].wait()

    def restart_dead(self) -> list[str]:
        """Restart what has died, as a supervisor would; returns the names."""
        dead = [name for name, process in self.processes.items() if process.poll() is not None]
        for name in dead:
            self.start(name)
        return dead

    def log(self, name: str) -> str:
        """What a service has logged."""
        path = self.home / f"{name}.log"
        return f"\n== {name}\n{path.read_text(errors='replace')}" if path.exists() else ""

    def logged(self, name: str, action: str) -> int:
        """How often a service has logged this action."""
        return self.log(name).count(f'"action": "{action}"')

    # Jobs

    def submit(self, script: str, *, inputs: str | Path | dict[str, object], **settings: object) -> str:
        """Submit a job as the API would; returns its id."""
        given = inputs if isinstance(inputs, dict) else str(inputs)
        return self._submit(self.code(script), {"entry_script": "entry.py", "inputs": given, **settings})

    def submit_command(self, command: str, *, script: str = "", **settings: object) -> str:
        """Submit a job with a command, and perhaps an entry.py among its code; returns its id."""
        return self._submit(self.code(script), {"command": command, **settings})

    def _submit(self, code: Path, document: dict[str, object]) -> str:
        owner = str(document.pop("owner", ""))
        spec = JobSpec.parse(document)
        job_id, now = new_job_id(), time.time()
        record = JobRecord(
            job_id=job_id,
            submitted=now,
            code=snapshots.snapshot_folder(code, code_store(self.root)),
            spec=spec.model_dump(mode="json"),
            owner=owner,
        )
        self.folder(job_id).create(record)
        self.registry.add_job(job_id, submitted=now)
        ask_for_leader(self.redis, job_id)
        return job_id

    def submit_pipeline(
        self, script: str, steps: dict[str, dict[str, Any]], *, places: Places | None = None, **settings: object
    ) -> str:
        """Submit a pipeline as the API would; returns its id.

        Args:
            script: the entry script of all parallel steps that have none of their own in `script`.
        """
        made = {name: self._step(script, step) for name, step in steps.items()}
        spec = PipelineSpec.parse({"steps": made, **settings})
        record = JobRecord(
            job_id=new_job_id(), submitted=time.time(), code="", spec=spec.model_dump(mode="json"), places=places
        )
        launch(self.redis, self.root, record)
        return record.job_id

    def _step(self, script: str, step: dict[str, Any]) -> dict[str, Any]:
        """A step with its code, and with the steps of a pipeline in it likewise."""
        step = {"type": "parallel", **step}
        if step["type"] == "pipeline":
            job = step["job"]
            inner = {name: self._step(script, each) for name, each in job["steps"].items()}
            return {**step, "job": {**job, "steps": inner}}
        code = snapshots.snapshot_folder(self.code(step.pop("script", script)), code_store(self.root))
        entry = {} if step["type"] == "command" else {"entry_script": "entry.py"}
        return {**step, "job": {**entry, **step["job"]}, "code": code}

    def step_jobs(self, pipeline: str) -> dict[str, str]:
        """The jobs of a pipeline's steps, as far as there are any, by the names of the steps."""
        folder = self.folder(pipeline)
        known = standings(folder, folder.record().pipeline_spec())
        return {name: each.job_id for name, each in known.items() if each.job_id}

    def code(self, script: str) -> Path:
        """A code folder whose entry.py is this script."""
        code = self.home / "code"
        code.mkdir(exist_ok=True)
        (code / "entry.py").write_text(script)
        return code

    def folder(self, job_id: str) -> JobFolder:
        return JobFolder(self.root, job_id)

    def result(self, job_id: str, timeout_s: float = 60) -> JobResult:
        """How the job ended; fails the test when it doesn't in time."""
        self.until(lambda: self.folder(job_id).result() is not None, f"{job_id} ends", timeout_s)
        result = self.folder(job_id).result()
        assert result is not None
        return result

    def output(self, result: JobResult) -> list[str]:
        """The lines of a job's output."""
        return Path(result.output).read_text().splitlines()

    def files(self, count: int) -> Path:
        """A folder of so many empty files, with names in order."""
        folder = self.home / f"input-{count}"
        if not folder.exists():
            folder.mkdir()
            for number in range(count):
                (folder / f"file-{number:07d}.txt").touch()
        return folder

    @staticmethod
    def until(condition: Callable[[], bool], what: str, timeout_s: float = 30) -> None:
        """Wait for something in other processes that has no event to wait for."""
        deadline = time.monotonic() + timeout_s
        while not condition():
            assert time.monotonic() < deadline, f"not within {timeout_s} s: {what}"
            time.sleep(0.01)


def _is_worker(process: psutil.Process) -> bool:
    try:
        return process.status() != psutil.STATUS_ZOMBIE and "template" not in process.cmdline()
    except psutil.Error:  # it has just ended
        return False


def _answers(url: str) -> bool:
    # A client of httpx would load the machine's certificates for each of these calls.
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=5)
    try:
        connection.request("GET", "/livez")
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
