"""From a worker's answer to the record in the log, whatever the user's code has put into it."""

from __future__ import annotations

import json
import signal
from types import SimpleNamespace
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parallelrun_agent.policy.in_flight import Assignment
from parallelrun_agent.policy.outcomes import OutcomeBuilder, WorkerAnswer, cause_of_death
from parallelrun_agent.policy.worker import Exit, KillReason
from parallelrun_agent.workers.answers import parse_answer, parse_failure
from parallelrun_core.errors import ParallelRunError
from parallelrun_core.folder.decided import Decided
from parallelrun_core.spec import JobSpec, retry_policy
from parallelrun_core.spec.retry_policy import MiniBatchRetryPolicy
from parallelrun_core.wire.data_warnings import DataWarning
from parallelrun_core.wire.leasing import Delivery
from parallelrun_core.wire.masking import Mask
from parallelrun_core.wire.message import DescribedMiniBatch, Piece, encode_described, encode_files
from parallelrun_core.wire.outcome import ErrorCategory, Failure, Outcome, Use, decode_list, encode, encode_list
from parallelrun_worker import frames
from tests.unit.core.factories import outcome

WORKER: Any = SimpleNamespace(process="process000", part_name="s.process000")


def record(answer: WorkerAnswer, *, tries: int = 0, run_max_try: int = 3) -> Outcome:
    assignment = Assignment(Delivery(7, "s/1", tries, False, b""), 5, 1.0)
    return OutcomeBuilder("node", 0, MiniBatchRetryPolicy(run_max_try)).build(assignment, WORKER, answer, 0.5)


def failed_frame(**said: object) -> bytes:
    fields = {"category": "RUN_EXCEPTION", "message": "m", "traceback": "t", **said}
    return failed_payload(json.dumps(fields).encode())


def failed_payload(error: bytes) -> bytes:
    rest = frames.pack_use(frames.Use()) + error
    frame = frames.pack_result(frames.FAILED, rest, mini_batch=7, items=0, run_s=0.1, process_s=0.1)
    return frame[frames.HEAD.size :]


def answered(failed: bytes) -> WorkerAnswer:
    return parse_answer(frames.FAILED, failed, Mask({}))


def test_a_done_frame_becomes_a_decision() -> None:
    result = frames.RESULT.pack(7, 10, 20, 30, 5, 4, 1, 2, 0.25, 0.125)
    answer = parse_answer(frames.DONE, result + frames.pack_use(frames.Use(1000, 2000)), Mask({}))
    done = record(answer)
    assert answer.mini_batch == 7
    assert (done.mini_batch, done.status, done.tries, done.token) == (7, "done", 1, "s/1")
    assert (done.part, done.offset, done.length, done.crc) == ("s.process000", 10, 20, 30)
    assert (done.rows, done.items, done.run_s, done.process_s, done.elapsed_s) == (4, 5, 0.25, 0.125, 0.5)
    assert (done.line_breaks, done.shortened, done.failure) == (1, 2, None)
    assert done.use == Use(peak_bytes=1000, read_bytes=2000)


RESULT: dict[str, Any] = {
    "mini_batch": 7, "offset": 11, "length": 12, "crc": 13, "items": 14, "rows": 15, "line_breaks": 16, "shortened": 17,
    "run_s": 0.25, "process_s": 0.125,
}  # fmt: skip
"""No two fields have the same value."""


def test_each_field_of_a_result_is_the_same_field_in_frame_answer_and_outcome() -> None:
    used = {name: number for number, name in enumerate(frames.Use._fields, 18)}
    frame = frames.pack_result(frames.DONE, frames.pack_use(frames.Use(**used)), **RESULT)
    kind, length = frames.HEAD.unpack_from(frame)
    payload = frame[frames.HEAD.size :]
    assert (kind, length) == (frames.DONE, len(payload))
    assert dict(zip(frames.RESULT_FIELDS, frames.RESULT.unpack_from(payload), strict=True)) == RESULT
    answer = parse_answer(kind, payload, Mask({}))
    assert {name: getattr(answer, name) for name in RESULT} == RESULT
    outcome = record(answer)
    assert {name: getattr(outcome, name) for name in RESULT} == RESULT
    assert answer.use == outcome.use == Use(**used)


def test_each_field_of_an_outcome_comes_from_where_it_is_known() -> None:
    failure = Failure("RUN_EXCEPTION", "m", "t")
    delivery = Delivery(7, "token", 4, False, b"")
    warning = DataWarning("k", "f", "c", "w", "r")
    assignment = Assignment(delivery, items=20, handed_over=21.5, load_s=22.5, warnings=(warning,))
    assignment.waits = {"openai": 26.5}
    answer = WorkerAnswer(**RESULT, use=Use(18, 19), failure=failure)
    made = OutcomeBuilder("node", 23, retries=MiniBatchRetryPolicy(9)).build(assignment, WORKER, answer, 24.5)
    known = {name: getattr(made, name) for name in made.__struct_fields__}
    assert known == RESULT | {
        "generation": 23, "status": "retry", "token": "token", "tries": 5, "node": "node", "process": "process000",
        "part": "s.process000", "items": 20, "started": 21.5, "elapsed_s": 24.5, "failure": failure, "load_s": 22.5,
        "detail": known["detail"], "use": Use(18, 19), "warnings": (warning,),
        "parts": (), "lost": (), "waits": {"openai": 26.5},
    }  # fmt: skip


@pytest.mark.parametrize("loads, loaded_at, worker, times", [
    (True, 0.0, WORKER, (0.0, 22.5 + 0.25)), (True, 1.0, WORKER, (0.25, 22.5)), (False, 0.0, WORKER, (0.25, 22.5)),
    (False, 0.0, None, (0.0, 24.5)),
])  # fmt: skip
def test_a_try_whose_data_never_came_has_spent_its_time_loading(
    loads: bool, loaded_at: float, worker: Any, times: tuple[float, float]
) -> None:
    assignment = Assignment(Delivery(7, "token", 4, False, b""), 20, 21.5, loads, loaded_at, load_s=22.5)
    answer = WorkerAnswer(7, run_s=0.25, failure=Failure("INPUT_UNREADABLE", "m"))
    made = OutcomeBuilder("node", 23, retries=MiniBatchRetryPolicy(9)).build(assignment, worker, answer, 24.5)
    assert (made.run_s, made.load_s) == times


def test_a_delivery_that_was_lost_with_its_node_is_no_try() -> None:
    assignment = Assignment(Delivery(7, "s/1", 0, True, b""), 5, 1.0)
    made = OutcomeBuilder("node", 0, MiniBatchRetryPolicy(2)).build(
        assignment, WORKER, WorkerAnswer(7, failure=Failure("SIGNAL", "m")), 0.5
    )
    assert (made.status, made.tries) == ("retry", 1)


def test_no_bytes_need_no_part() -> None:
    assert record(WorkerAnswer(7)).part == ""


@pytest.mark.parametrize(
    "tries, run_max_try, status", [(0, 1, "failed"), (0, 2, "retry"), (1, 2, "failed"), (5, 3, "failed")]
)
def test_a_failure_is_tried_again_until_the_tries_are_used_up(
    tries: int, run_max_try: int, status: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcome = record(answered(failed_frame()), tries=tries, run_max_try=run_max_try)
    assert (outcome.status, outcome.tries) == (status, tries + 1)
    assert outcome.failure == Failure("RUN_EXCEPTION", "m", "t")

    monkeypatch.setattr(retry_policy, "NOT_TRIED_AGAIN", {"RUN_EXCEPTION"})
    assert record(answered(failed_frame()), tries=tries, run_max_try=run_max_try).status == "failed"


any_text = st.text(st.characters(), max_size=20) | st.text("a\udcff\ud83dé\n\0", max_size=5)


@given(message=any_text, traceback=any_text)
def test_any_text_in_an_error_can_be_recorded(message: str, traceback: str) -> None:
    """A file name that is no UTF-8 is in many a message; it must not end the agent that records it."""
    outcome = record(answered(failed_frame(message=message, traceback=traceback)))
    (back,) = decode_list(encode_list([encode(outcome)]))
    assert back == outcome


@given(rest=st.binary(max_size=30) | st.builds(lambda value: json.dumps(value).encode(), st.dictionaries(
    st.sampled_from(["category", "message", "traceback"]), st.none() | st.text(max_size=3) | st.integers(), max_size=3,
)))  # fmt: skip
def test_what_no_worker_of_ours_says_is_told_as_such_or_recorded(rest: bytes) -> None:
    """The user's code can write into the pipe. What comes of it is an error of a kind that the agent expects."""
    try:
        answer = answered(failed_payload(rest))
    except (ParallelRunError, LookupError):
        return
    (back,) = decode_list(encode_list([encode(record(answer))]))
    assert back.failure is not None


@pytest.mark.parametrize("size", [0, 1, frames.RESULT.size - 1, frames.RESULT.size + frames.USE.size - 1])
def test_a_frame_that_is_too_short_is_told_as_such(size: int) -> None:
    with pytest.raises((ParallelRunError, LookupError)):
        parse_answer(frames.DONE, bytes(size), Mask({}))


SPEC = JobSpec.parse({"entry_script": "e.py", "inputs": "/in", "run_invocation_timeout": 5, "task_overhead_timeout": 7})


@pytest.mark.parametrize(
    "exit_code, reason, oom, category, words",
    [
        (-signal.SIGKILL, "run_timeout", False, "RUN_TIMEOUT", "run_invocation_timeout (5 s)"),
        (0, "run_timeout", False, "RUN_TIMEOUT", "5 s"),
        (-signal.SIGKILL, "load_timeout", False, "LOAD_TIMEOUT", "task_overhead_timeout (7 s)"),
        (-signal.SIGKILL, "", True, "OOM_KILLED", "memory"),
        (-signal.SIGSEGV, "", False, "SIGNAL", "SIGSEGV"),
        (-signal.SIGKILL, "", False, "SIGNAL", "memory"),
        (-63, "", False, "SIGNAL", "63"),
        (0, "", False, "EXITED", "code 0"),
        (3, "", False, "EXITED", "code 3"),
    ],
)
def test_the_cause_of_death_is_told(exit_code: int, reason: KillReason, oom: bool, category: str, words: str) -> None:
    failure = cause_of_death(Exit(exit_code, oom_killed=oom), reason=reason, spec=SPEC)
    assert failure.category == category
    assert words in failure.message


def test_what_init_raises_is_told_as_such_but_for_a_gpu_that_is_too_small() -> None:
    def category(said: str) -> str:
        report = json.dumps({"category": said, "message": "m", "traceback": ""}).encode()
        return parse_failure(report, Mask({}), "INIT_EXCEPTION").category

    assert category("RUN_EXCEPTION") == "INIT_EXCEPTION"
    assert category("GPU_OUT_OF_MEMORY") == "GPU_OUT_OF_MEMORY"


@pytest.mark.parametrize("category", get_args(ErrorCategory))
@pytest.mark.parametrize("has_begun", [True, False])
def test_outcomes_of_every_kind_of_failure_add_up_to_all_items(category: ErrorCategory, has_begun: bool) -> None:
    """Also if the mini-batch never got as far as a worker, as one whose objects can't be brought."""
    decided = Decided()
    decided.accept(outcome(0, items=20, rows=20))
    message = encode_files([(b"/in", [b"%d" % number for number in range(7)])], 7)
    assignment = Assignment(Delivery(1, "s/1", 2, False, message), 7 if has_begun else 0)
    answer = WorkerAnswer(1, items=0, failure=Failure(category, "m"))
    decided.accept(
        OutcomeBuilder("node", 0, MiniBatchRetryPolicy(3)).build(assignment, WORKER if has_begun else None, answer, 0.5)
    )
    assert (decided.items_done, decided.items_failed, decided.items_estimated) == (20, 7, 0)


@pytest.mark.parametrize("category", get_args(ErrorCategory))
def test_outcomes_whose_items_nobody_has_counted_are_estimated(category: ErrorCategory) -> None:
    decided = Decided()
    decided.accept(outcome(0, items=20, rows=20))
    table = encode_described(DescribedMiniBatch(0, [], [Piece(b"/in/t.csv", 0, 100)]), 0)
    answer = WorkerAnswer(1, failure=Failure(category, "m"))
    decided.accept(
        OutcomeBuilder("node", 0, MiniBatchRetryPolicy(3)).build(
            Assignment(Delivery(1, "s/1", 2, False, table)), None, answer, 0.5
        )
    )
    assert (decided.items_done, decided.items_failed, decided.items_estimated) == (20, 20, 20)
