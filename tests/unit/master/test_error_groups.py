"""Failures that look alike are one group, and the first and the most common ones are reported."""

from __future__ import annotations

import msgspec
import pytest

from parallelrun_master.policy.error_groups import ErrorGroups, files_of
from tests.unit.core.factories import failed, outcome


def test_errors_that_look_alike_are_one_group_reported_once() -> None:
    errors = ErrorGroups()
    told = [errors.add(failed(number, message=f"ValueError: bad\nline {number}")) for number in range(5)]
    assert [found is not None for found in told] == [True, False, False, False, False]
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
    told = sum(errors.add(failed(number, message=f"E{number}")) is not None for number in range(3000))
    assert told == 1000
    assert len(errors.most_common(10_000)) == 1000


@pytest.mark.parametrize(
    "items, files, told", [(10, ["a", "b", "c"], ["a", "b", "c", "…"]), (2, ["a", "b"], ["a", "b"]), (9, [], [])]
)
def test_the_first_files_of_a_mini_batch_do_not_look_like_all(items: int, files: list[str], told: list[str]) -> None:
    assert files_of(msgspec.json.encode({"id": 4, "items": items, "files": files}).decode()) == told
