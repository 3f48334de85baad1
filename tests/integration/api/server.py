"""The API as a process of its own, and a stand-in for the master that the jobs would have."""

from __future__ import annotations

import http.client
import json
import os
import queue
import signal
import ssl
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import httpx
import msgspec

from parallelrun_core.folder.decisions import DecisionWriter
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.folder.records import JobResult
from parallelrun_core.store.keys import JobKeys
from parallelrun_core.store.leader_queue import LeaderQueue
from parallelrun_core.store.nodes import NodeInfo, NodeRegistry
from parallelrun_core.store.registry import Registry
from parallelrun_core.store.roles import Role
from parallelrun_core.wire.failure import JobFailure
from parallelrun_core.wire.outcome import Failure, Outcome
from parallelrun_core.wire.progress import Progress
from parallelrun_core.wire.states import JobState, NodeState
from tests.redis_server import SECRETS
from tests.service_template import ForkedService, can_be_forked, service_template

if TYPE_CHECKING:
    from redis import Redis


ROOT = Path(__file__).parents[3]


_START_S = 120.0
"""Starting takes a second, and much longer where many tests start servers at once."""


class ApiServer:
    """One `parallelrun-api` process; `with` it.

    Args:
        insecure: it requires no token, unless the flags name one.
        run_by: what its command line begins with, such as a command that runs it.
        without: the mechanism that is disabled in it (see `tests.twins.sabotage`).
    """

    def __init__(
        self,
        root: Path,
        redis_url: str,
        *flags: str,
        volatile: bool = True,
        insecure: bool = True,
        env: dict[str, str] | None = None,
        run_by: tuple[str, ...] = (),
        without: str = "",
    ) -> None:
        self.root = root
        module = ["tests.twins.launch", without, "parallelrun_api.main"] if without else ["parallelrun_api"]
        self._flags = [
            "--port", "0", "--root", str(root), "--redis-url", redis_url,
            *(["--allow-volatile-redis"] if volatile else []),
            *(["--insecure"] if insecure and "--token" not in flags else []), *flags,
        ]  # fmt: skip
        self._command = [*run_by, sys.executable, "-m", *module, *self._flags]
        self._may_be_forked = not run_by and not without
        self._env = {**os.environ, "PARALLELRUN_REDIS_SECRET": SECRETS[Role.API], **(env or {})}
        self._lines: queue.Queue[dict[str, Any]] = queue.Queue()
        self._reader: threading.Thread | None = None
        self.log: list[dict[str, Any]] = []
        self.raw_log: list[str] = []
        self.port = 0
        self.process: subprocess.Popen[bytes] | ForkedService | None = None

    def __enter__(self) -> Self:
        self.start()
        self.wait_for("started", _START_S)
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.stop(signal.SIGKILL)

    def start(self) -> None:
        """Start the process, and don't wait for it."""
        log_fd, write_fd = os.pipe()
        try:
            if self._may_be_forked and can_be_forked(self._env):
                self.process = service_template().start("parallelrun_api.main", self._flags, self._env, write_fd)
            else:
                self.process = subprocess.Popen(self._command, stderr=write_fd, env=self._env, cwd=ROOT)
        finally:
            os.close(write_fd)
        self._reader = threading.Thread(target=self._read, args=(log_fd,), daemon=True)
        self._reader.start()

    def _read(self, log_fd: int) -> None:
        with open(log_fd, encoding="utf-8") as lines:
            for line in lines:
                self.raw_log.append(line)
                try:
                    entry = json.loads(line)
                except ValueError:
                    entry = {"action": "not json", "line": line}
                self.log.append(entry)
                self._lines.put(entry)

    def wait_for(self, action: str, timeout_s: float = 20.0, **fields: object) -> dict[str, Any]:
        """The next line of the log with this action and these fields."""
        deadline = time.monotonic() + timeout_s
        while True:
            try:
                entry = self._lines.get(timeout=max(0.01, deadline - time.monotonic()))
            except queue.Empty:
                raise AssertionError(f"no {action} in {self.raw_log}") from None
            if entry.get("action") == "started":
                self.port = entry["port"]
            if entry.get("action") == action and fields.items() <= entry.items():
                return entry

    def stop(self, signal_number: int = signal.SIGTERM) -> int:
        """Send a signal and return the exit code."""
        assert self.process is not None
        self.process.send_signal(signal_number)
        return self.exit_code()

    def exit_code(self) -> int:
        """Wait until the process has ended, and return its exit code."""
        assert self.process is not None
        assert self._reader is not None
        code = self.process.wait(20)
        self._reader.join()
        return code

    def get(self, target: str) -> tuple[int, str, bytes]:
        """GET exactly this target, which a client would tidy up first; returns status, content type and body."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            connection.putrequest("GET", target)
            connection.endheaders()
            answer = connection.getresponse()
            return answer.status, answer.headers["Content-Type"], answer.read()
        finally:
            connection.close()

    def client(self, **options: Any) -> httpx.Client:
        """A client of this server, without any retries."""
        # Loading the machine's certificates, which plain HTTP has no use for, takes longer than most tests.
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        return httpx.Client(
            base_url=f"http://127.0.0.1:{self.port}", timeout=30, trust_env=False, verify=tls, **options
        )


def beat(redis: Redis, slots: int = 4, *, workers: dict[str, int] | None = None, **fields: Any) -> None:
    """Tell Redis of a node `n1` that is ready, and has so many workers for each job."""
    info = NodeInfo(
        node="n1", session="n1-1", host="h", pid=1, slots=slots, busy=sum((workers or {}).values()), version="0",
        started=0.0, state=NodeState.READY, jobs=sorted(workers or {}), workers=workers or {}, sent=time.time(),
        **fields,
    )  # fmt: skip
    NodeRegistry(redis).beat(info, lease_ms=60_000)


@dataclass(frozen=True)
class Master:
    """Does to a job what its master would do."""

    root: Path
    redis: Redis

    def _queue(self, job_id: str) -> LeaderQueue:
        return LeaderQueue(self.redis, job_id)

    def begin(self, job_id: str) -> None:
        """Lead the job."""
        self._queue(job_id).acquire("token", ttl_ms=60_000, folder_term=0)
        Registry(self.redis).move(job_id, JobState.PROCESSING)
        self._queue(job_id).show({"started": time.time()})  # type: ignore[dict-item]

    def progress(self, job_id: str, progress: Progress) -> None:
        """Say how far it is."""
        encoded = msgspec.json.encode(progress)
        self._queue(job_id).show({"progress": encoded}, event=("progress", encoded))

    def error(self, job_id: str, data: dict[str, Any]) -> None:
        """Tell of a first error."""
        self._queue(job_id).announce("error", msgspec.json.encode(data))

    def announce_end(self, job_id: str) -> None:
        """Say that it is over, which is not yet the record of it."""
        self.redis.xadd(JobKeys(job_id).events, {"event": "end", "data": "{}"})

    def decide(self, job_id: str, term: int, records: list[list[Outcome]]) -> None:
        """Write decisions, one record each."""
        writer = DecisionWriter(JobFolder(self.root, job_id).path, term)
        for outcomes in records:
            writer.add(outcomes)
        writer.sync()
        writer.close()

    def end(self, job_id: str, state: JobState, failure: JobFailure | None = None, rows: bytes = b"") -> None:
        """Record the end, in the order in which a master does it: the state first, the result when all is done."""
        registry = Registry(self.redis)
        if state == JobState.COMPLETED:
            registry.move(job_id, JobState.FINALIZING)
        if state != JobState.CANCELED:
            registry.move(job_id, state, failure)
        self.conclude(job_id, state, failure, rows)

    def retire(self, job_id: str) -> None:
        """Its leader is done with it."""
        queue = self._queue(job_id)
        queue.acquire("token", ttl_ms=60_000, folder_term=0)
        Registry(self.redis).retire(job_id, term=queue.term)

    def conclude(self, job_id: str, state: JobState, failure: JobFailure | None = None, rows: bytes = b"") -> None:
        """Write the result."""
        folder = JobFolder(self.root, job_id)
        output = ""
        if state == JobState.COMPLETED:
            folder.layout.make_folders()
            path = Path(folder.output_file(folder.record().job_spec()))
            path.write_bytes(rows)
            output = str(path)
        folder.conclude(
            JobResult(
                job_id=job_id, state=state, started=time.time(), ended=time.time(), progress=Progress(done=3, rows=3),
                output=output, output_bytes=len(rows), output_sha256="0" * 64, order="sorted", failure=failure,
            )
        )  # fmt: skip


def outcome(mini_batch: int, **changes: Any) -> Outcome:
    """A decision that nothing is special about."""
    plain = Outcome(
        mini_batch=mini_batch, generation=0, status="done", token="n-1/2.3", tries=1, node="node0",
        process="process000", part="p", offset=0, length=10, crc=1, items=10, rows=10, started=1_763_700_000.125,
        elapsed_s=0.5, run_s=0.4, process_s=0.45,
    )  # fmt: skip
    return msgspec.structs.replace(plain, **changes)


RUN_FAILED = Failure("RUN_EXCEPTION", "ValueError: bad row", "Traceback …")
