"""Turns what a worker answered, or what it died of, into the outcome of a try. Pure, no I/O."""

from __future__ import annotations

import json
import signal
from dataclasses import dataclass

from parallelrun_agent.line import InHand
from parallelrun_agent.worker_process import WorkerProcess
from parallelrun_core.outcome import ErrorCategory, Failure, Outcome, Status
from parallelrun_worker import frames


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a worker said of one mini-batch, or what stands for it when it died: nothing."""

    offset: int = 0
    length: int = 0
    crc: int = 0
    rows: int = 0
    run_s: float = 0.0
    process_s: float = 0.0
    failure: Failure | None = None


def parse_answer(kind: int, payload: bytes) -> Answer:
    """Read a DONE or FAILED frame."""
    _, offset, length, crc, rows, run_s, process_s = frames.RESULT.unpack_from(payload)
    failure = None
    if kind == frames.FAILED:
        said = json.loads(payload[frames.RESULT.size :])
        failure = Failure(said["category"], said["message"], said["traceback"])
    return Answer(offset=offset, length=length, crc=crc, rows=rows, run_s=run_s, process_s=process_s, failure=failure)


@dataclass(frozen=True, slots=True)
class Recorder:
    """Makes the outcomes of one job on one node."""

    node: str
    generation: int
    run_max_try: int

    def outcome(self, entry: InHand, worker: WorkerProcess, answer: Answer, elapsed_s: float) -> Outcome:
        """The outcome of a try: done, failed for good, or to be tried again."""
        delivery = entry.delivery
        tries = delivery.tries + 1
        status: Status = "done"
        if answer.failure is not None:
            status = "failed" if tries >= self.run_max_try else "retry"
        return Outcome(
            mini_batch=delivery.mini_batch,
            generation=self.generation,
            status=status,
            token=delivery.token,
            tries=tries,
            node=self.node,
            process=worker.process,
            part=worker.part_name if answer.length else "",
            offset=answer.offset,
            length=answer.length,
            crc=answer.crc,
            items=entry.items,
            rows=answer.rows,
            started=entry.handed_over,
            elapsed_s=elapsed_s,
            run_s=answer.run_s,
            process_s=answer.process_s,
            failure=answer.failure,
        )


def cause_of_death(exit_code: int, *, reason: str, timeout_s: float, oom_killed: bool) -> Failure:
    """Why a worker ended in the middle of run()."""
    category: ErrorCategory
    if reason == "timeout":
        category, message = "RUN_TIMEOUT", f"run() took longer than run_invocation_timeout ({timeout_s:g} s)."
    elif oom_killed:
        category, message = "OOM_KILLED", "The kernel ended the worker because memory ran out."
    elif exit_code < 0:
        name = _signal_name(-exit_code)
        category, message = "SIGNAL", f"The worker was ended by signal {-exit_code} ({name}) during run()."
        if -exit_code == signal.SIGKILL:
            message += " Somebody sent it, or the kernel ended the worker because memory ran out."
    else:
        category, message = "EXITED", f"The worker exited with code {exit_code} during run()."
    return Failure(category, message)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "unknown"
