"""Failures that look alike are one group, and the first and the most common ones are reported."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from parallelrun_core.wire.outcome import Failure
from parallelrun_master.ledger.retry_log import RetryLog, shortened
from parallelrun_master.policy.error_groups import ErrorGroup, ErrorGroups, files_of
from tests.unit.core.factories import failed, outcome


def raised_at(line: int, *, file: str = "score.py", inside: str = "") -> str:
    """A traceback of `run()`, with what was called from it."""
    frames = f'  File "{file}", line {line}, in run\n    work()\n{inside}'
    return f"Traceback (most recent call last):\n{frames}ValueError: bad"


IN_LIBRARY = '  File "/usr/lib/python3/site-packages/pandas/io.py", line {}, in read\n    raise error\n'


def groups_of(*failures: Failure) -> list[ErrorGroup]:
    errors = ErrorGroups()
    for number, failure in enumerate(failures):
        errors.add(failed(number, failure=failure))
    return errors.most_common(1000)


def test_an_error_with_another_path_each_time_is_one_group() -> None:
    (group,) = groups_of(
        *(Failure("RUN_EXCEPTION", f"FileNotFoundError: no /data/{n}.csv", raised_at(7)) for n in range(150))
    )
    assert (group.count, group.message, group.mini_batches) == (150, "FileNotFoundError: no /data/0.csv", [0, 1, 2])
    assert group.has_several_messages


@pytest.mark.parametrize(
    "other",
    [
        Failure("RUN_EXCEPTION", "ValueError: bad", raised_at(8)),
        Failure("RUN_EXCEPTION", "KeyError: bad", raised_at(7)),
        Failure("RUN_EXCEPTION", "ValueError: bad", raised_at(7, inside='  File "lib/parse.py", line 7, in parse\n')),
        Failure("RUN_EXCEPTION", "MemoryError", raised_at(7)),
        Failure("RUN_TIMEOUT", "run() took longer than run_invocation_timeout (5 s)."),
    ],
)
def test_another_line_or_type_is_another_group(other: Failure) -> None:
    assert len(groups_of(Failure("RUN_EXCEPTION", "ValueError: bad", raised_at(7)), other)) == 2


@pytest.mark.parametrize(
    "one, other",
    [
        (raised_at(7, inside=IN_LIBRARY.format(10)), raised_at(7, inside=IN_LIBRARY.format(99))),
        ("x\n\nDuring handling of the above exception, another exception occurred:\n\n" + raised_at(7), raised_at(7)),
        ("  | " + raised_at(7).replace("\n", "\n  | "), raised_at(7)),
    ],
)
def test_the_innermost_line_of_the_users_own_code_counts(one: str, other: str) -> None:
    assert len(groups_of(*(Failure("RUN_EXCEPTION", "ValueError: bad", each) for each in (one, other)))) == 1


@pytest.mark.parametrize(
    "failures, count",
    [
        ([Failure("OOM_KILLED", f"The kernel ended it. It had {n} MiB at its peak.") for n in range(9)], 1),
        ([Failure("SIGNAL", f"It was ended by signal 9 (SIGKILL). It had {n} MiB.") for n in range(9)], 1),
        ([Failure("RUN_EXCEPTION", f"MemoryError: {n} bytes", raised_at(n)) for n in range(9)], 1),
        ([Failure("RUN_EXCEPTION", f"numpy._ArrayMemoryError: {n}", raised_at(n)) for n in range(9)], 1),
        ([Failure("INPUT_UNREADABLE", f"The data can't be read: '/d/{n}.csv', line {n}") for n in range(9)], 1),
        ([Failure("BAD_RETURN", f"run() returned {n} in row {n}") for n in range(9)], 1),
        ([Failure("EXITED", f"The worker exited with code {n} during run().") for n in range(9)], 9),
        ([Failure("SIGNAL", f"It was ended by signal {n} during run().") for n in range(9)], 9),
    ],
)
def test_deaths_and_unreadable_data_are_grouped_without_a_line(failures: list[Failure], count: int) -> None:
    assert len(groups_of(*failures)) == count


def test_a_retry_that_was_shortened_stays_in_its_group(tmp_path: Path) -> None:
    """A leader that takes over gets the groups of the one before."""
    tries = [failed(n, status="retry", message=f"ValueError: /d/{n}", traceback=raised_at(n % 2)) for n in range(20)]
    first, log = ErrorGroups(), RetryLog(tmp_path, 1)
    for each in tries:
        log.add([shortened(each) if first.add(each) is None else each])
    log.close()
    second = ErrorGroups()
    for each in RetryLog(tmp_path, 2).earlier():
        second.add(each)
    assert second.most_common(9) == first.most_common(9)
    assert len(second.most_common(9)) == 2


def test_errors_that_look_alike_are_one_group_reported_once() -> None:
    errors = ErrorGroups()
    new = [errors.add(failed(number, message=f"ValueError: bad\nline {number}")) for number in range(5)]
    assert [group is not None for group in new] == [True, False, False, False, False]
    (group,) = errors.most_common(5)
    assert (group.count, group.mini_batches) == (5, [0, 1, 2])
    assert errors.first is group


def test_the_most_common_come_first_and_the_first_stays_the_first() -> None:
    errors = ErrorGroups()
    for message, count in (("a", 1), ("b", 3), ("c", 2)):
        for number in range(count):
            errors.add(failed(number, message=message))
    assert [group.message for group in errors.most_common(2)] == ["b", "c"]
    assert errors.first is not None
    assert errors.first.message == "a"
    assert errors.add(outcome(1)) is None


def test_a_million_different_errors_need_no_memory_and_are_not_all_reported() -> None:
    errors = ErrorGroups()
    told = sum(
        errors.add(failed(number, message=f"E{number}: bad", traceback=raised_at(number))) is not None
        for number in range(3000)
    )
    assert told == 1000
    assert len(errors.most_common(10_000)) == 1000


@pytest.mark.parametrize(
    "items, files, told", [(10, ["a", "b", "c"], ["a", "b", "c", "…"]), (2, ["a", "b"], ["a", "b"]), (9, [], [])]
)
def test_the_first_files_of_a_mini_batch_do_not_look_like_all(items: int, files: list[str], told: list[str]) -> None:
    assert files_of(msgspec.json.encode({"id": 4, "items": items, "files": files}).decode()) == told


def test_what_an_error_has_cost_for_good_follows_retries_and_reopened_mini_batches() -> None:
    errors = ErrorGroups()
    errors.add(failed(0, items=3, status="retry"))
    assert [(each.items, each.mini_batches) for each in errors.costliest()] == [(0, 0)], "it may still succeed"
    errors.add(failed(0, items=3, tries=2, traceback=raised_at(7)))
    errors.add(failed(1, items=9, message="KeyError: 1", traceback=raised_at(8)))
    errors.add(failed(2, items=9, message="KeyError: 2", traceback=raised_at(8)))
    costs = errors.costliest()
    assert [(each.exception, each.place, each.items, each.mini_batches) for each in costs] == [
        ("KeyError", "score.py:8", 18, 2), ("ValueError", "score.py:7", 3, 1),
    ]  # fmt: skip
    assert costs[0].message == "KeyError: …"
    errors.add(failed(1, items=9, generation=1, traceback=raised_at(7)))
    errors.take_out(2)
    assert [(each.exception, each.items, each.mini_batches) for each in errors.costliest()] == [("ValueError", 12, 2)]
