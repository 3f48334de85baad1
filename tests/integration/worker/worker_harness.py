"""One worker process as an agent starts it, and everything that it answers."""

from __future__ import annotations

import json
import os
import select
import sys
import textwrap
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from parallelrun_agent.users.worker_user import SAME_USER
from parallelrun_agent.workers.plans import WorkerPlan
from parallelrun_agent.workers.template_process import TemplateKey, TemplateProcess
from parallelrun_agent.workers.worker_process import WorkerProcess
from parallelrun_agent.workers.worker_start import Fork
from parallelrun_worker import frames

PATIENCE_S = 30.0


class Answer(NamedTuple):
    """A DONE or FAILED frame, taken apart."""

    mini_batch: int
    rows: bytes
    returned: int
    error: dict[str, Any]


def key_of(code: Path, **variables: str) -> TemplateKey:
    """The key of a template for `score.py` in this folder."""
    hidden = ("PARALLELRUN_", "REDIS_")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(hidden)} | variables
    return TemplateKey(
        owner="", job_id="", python=sys.executable, user=SAME_USER, code=str(code), entry_script="score.py",
        reads_tables=False, environment=tuple(environment.items()),
    )  # fmt: skip


class WorkerHarness:
    """A worker with an entry script of the test's own. `close()` it."""

    def __init__(
        self,
        folder: Path,
        script: str,
        *,
        rows: bool = True,
        argv: Iterable[str] = (),
        logging_level: str = "INFO",
        modules: Mapping[str, str] = MappingProxyType({}),
        config: Mapping[str, Any] = MappingProxyType({}),
        python: str = sys.executable,
        template: TemplateProcess | None = None,
        fork: Fork | None = None,
        **env: str,
    ) -> None:
        code = folder / "code"
        code.mkdir(parents=True, exist_ok=True)
        for name, source in {**modules, "score": script}.items():
            (code / f"{name}.py").write_text(textwrap.dedent(source))
        self.logs = folder / "logs"
        self.stdout, self.stderr = self.logs / "stdout.txt", self.logs / "stderr.txt"
        self.child_stdout, self.child_stderr = self.logs / "child_stdout.txt", self.logs / "child_stderr.txt"
        self.part = folder / "part" if rows else None
        self.working_folder = folder / "work" / "process000"
        secrets = {name: value for name, value in os.environ.items() if not name.startswith(("PARALLELRUN_", "REDIS_"))}
        plain = frames.WorkerConfig(
            job_id="job_1", node="node000", process="process000", workers=1,
            code=str(code), entry_script="score.py", argv=["score.py", *argv], inputs=str(folder / "inputs.json"),
            schemas=[str(folder / "schema.0.json")],
            output={"format": "text", "header": False, "separator": " ", "safe": False},
            logs=str(self.logs), output_dir=str(folder), uploaded=[], aside="", working_dir=str(folder),
            log=str(self.logs / "process000.txt"),
            errors=str(self.logs / "sys" / "error" / "node" / "node000" / "process000.txt"),
            logging_level=logging_level,
            nice=None, profiling_module="", exit_s=10.0, masked=[],
        )  # fmt: skip
        self.worker = WorkerProcess.start(
            WorkerPlan(
                config=plain._replace(**config), environment={**secrets, **env}, working_folder=self.working_folder,
                part=self.part, stdout=self.stdout, stderr=self.stderr,
                child_stdout=self.child_stdout, child_stderr=self.child_stderr,
                script_logs=self.logs / "files", max_log_bytes=64 << 20, python=python, own_variables=env,
                template=key_of(code),
            ),
            (lambda _, request: template.fork(request)) if template else fork,
        )  # fmt: skip
        self.received: list[tuple[int, bytes]] = []
        self.exit_code: int | None = None
        self._closed = False

    def close(self) -> None:
        """End it and free everything; harmless when that was done."""
        if self._closed:
            return
        self._closed = True
        if self.exit_code is None:
            self.exit_code = self.worker.reap()
        self.worker.close()
        if self.worker.part_fd >= 0:
            os.close(self.worker.part_fd)

    def _wait(self, done: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while True:
            self.received += self.worker.receive()
            if done():
                return
            assert time.monotonic() < deadline, f"{what}; received {self.received}; {self.stderr.read_text()}"
            ready, _, _ = select.select([self.worker.results, self.worker.pidfd], [], [], 1.0)
            if self.worker.pidfd in ready:
                self.received += self.worker.receive()
                assert done(), f"it died before: {what}; received {self.received}; {self.stderr.read_text()}"
                return

    def ready(self) -> WorkerHarness:
        """Wait until init() is through."""
        self._wait(lambda: any(kind == frames.READY for kind, _ in self.received), "ready")
        return self

    def until(self, condition: Callable[[], bool], what: str, within_s: float = PATIENCE_S) -> None:
        """Wait for something that the user's code does."""
        deadline = time.monotonic() + within_s
        while not condition():
            assert time.monotonic() < deadline, what
            time.sleep(0.01)

    def until_heard(self, kind: int) -> None:
        """Wait for a frame of this kind."""
        self._wait(lambda: kind in self.kinds(), f"kind {kind}")

    def deliver(self, mini_batch: int, payload: bytes, kind: int = frames.PATHS) -> None:
        """Hand over one mini-batch, as far as there is room."""
        self.worker.deliver(mini_batch, payload, kind)
        self.worker.send()

    def run(self, *items: str, mini_batch: int = 0) -> Answer:
        """Hand over one mini-batch and wait for its answer."""
        before = len(self.answers())
        self.deliver(mini_batch, "\0".join(items).encode("utf-8", "surrogateescape"))
        self._wait(lambda: len(self.answers()) > before, f"answer {before}")
        return self.answers()[before]

    def wait_for_answers(self, count: int) -> list[Answer]:
        self._wait(lambda: len(self.answers()) >= count, f"{count} answers")
        return self.answers()

    def answers(self) -> list[Answer]:
        """All answers so far, in order."""
        answers = []
        for kind, payload in self.received:
            if kind in (frames.DONE, frames.FAILED):
                result = result_of(payload)
                end = result["offset"] + result["length"]
                rows = self.part.read_bytes()[result["offset"] : end] if self.part else b""
                error = json.loads(payload[frames.RESULT.size + frames.USE.size :]) if kind == frames.FAILED else {}
                answers.append(Answer(result["mini_batch"], rows, result["rows"], error))
        return answers

    def results(self) -> list[dict[str, Any]]:
        """All that these answers say, by the names of `frames.RESULT_FIELDS` and `frames.Use`."""
        return [result_of(payload) for kind, payload in self.received if kind in (frames.DONE, frames.FAILED)]

    def waiting_files(self) -> list[Path]:
        """Files of mini-batches that are too long for the ring."""
        return list(self.working_folder.parent.rglob("*mini-batch*"))

    def kinds(self) -> list[int]:
        return [kind for kind, _ in self.received]

    def exited(self) -> int:
        """Wait for the end; returns the exit code."""
        ready, _, _ = select.select([self.worker.pidfd], [], [], PATIENCE_S)
        assert ready, "it doesn't end"
        self.received += self.worker.receive()
        self.exit_code = self.worker.reap()
        return self.exit_code


def result_of(payload: bytes) -> dict[str, Any]:
    """What a DONE or FAILED frame says."""
    use = frames.Use(*frames.USE.unpack_from(payload, frames.RESULT.size))
    return dict(zip(frames.RESULT_FIELDS, frames.RESULT.unpack_from(payload), strict=True)) | use._asdict()


def is_alive(pid: int) -> bool:
    """Whether a process runs: neither gone nor a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


Start = Callable[..., WorkerHarness]
"""The fixture `start`."""
ECHO = "def run(items):\n    return items\n"
