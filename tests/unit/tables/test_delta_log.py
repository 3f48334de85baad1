"""Which files of a Delta table's log are copied from a store for one version."""

from __future__ import annotations

from parallelrun_master.planning.formats.delta_log import needed


def commits(*versions: int) -> list[str]:
    return [f"{version:020}.json" for version in versions]


def checkpoint(version: int) -> str:
    return f"{version:020}.checkpoint.parquet"


def parts(version: int, count: int) -> list[str]:
    return [f"{version:020}.checkpoint.{part:010}.{count:010}.parquet" for part in range(1, count + 1)]


def test_without_a_checkpoint_all_commits_up_to_the_version_are() -> None:
    assert needed([*commits(0, 1, 2, 3), "_last_checkpoint", f"{0:020}.crc"], 2) == commits(0, 1, 2)


def test_what_is_in_a_checkpoint_is_not() -> None:
    log = [*commits(*range(25)), checkpoint(10), checkpoint(20)]

    assert needed(log, 24) == [checkpoint(20), *commits(*range(20, 25))]
    assert needed(log, 20) == [checkpoint(20), *commits(20)]
    assert needed(log, 19) == [checkpoint(10), *commits(*range(10, 20))]
    assert needed(log, 9) == commits(*range(10))


def test_a_checkpoint_in_parts_counts_when_all_are_there() -> None:
    log = [*commits(*range(8)), *parts(2, 2), *parts(5, 3)]

    assert needed(log, 7) == [*parts(5, 3), *commits(5, 6, 7)]
    assert needed([name for name in log if name != parts(5, 3)[1]], 7) == [*parts(2, 2), *commits(*range(2, 8))]
