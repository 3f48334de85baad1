"""Which environments a node keeps."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parallelrun_agent.environments.cache import LOCK, InUse, prune
from tests.unit.core.factories import names_in, open_descriptors


def environment(folder: Path, name: str, used: float) -> Path:
    """An environment that was used at that time."""
    made = folder / name
    (made / "bin").mkdir(parents=True)
    (made / "bin" / "python").touch()
    made.with_suffix(LOCK).touch()
    InUse(made).close()
    os.utime(made.with_suffix(".use"), (used, used))
    return made


def there(folder: Path) -> set[str]:
    return {name for name in names_in(folder) if (folder / name).is_dir()}


@settings(max_examples=60, deadline=None)
@given(used=st.permutations(range(5)), in_use=st.sets(st.integers(0, 4)), kept=st.integers(1, 6))
def test_those_used_last_are_kept_and_all_that_are_in_use(
    tmp_path_factory: pytest.TempPathFactory, used: list[int], in_use: set[int], kept: int
) -> None:
    folder = tmp_path_factory.mktemp("environments")
    for number, at in enumerate(used):
        environment(folder, f"e{number}", 1e9 + at)
    held = [InUse(folder / f"e{number}") for number in in_use]
    for number in in_use:  # a job that began long ago
        os.utime(folder / f"e{number}.use", (1e9 + used[number], 1e9 + used[number]))

    removed = prune(folder, kept)

    by_age = sorted(range(5), key=used.__getitem__)
    old = {f"e{number}" for number in by_age[: max(0, 5 - kept)] if number not in in_use}
    assert set(removed) == old
    kept_names = {f"e{number}" for number in range(5)} - old
    assert set(names_in(folder)) == {f"{name}{ending}" for name in kept_names for ending in ("", ".use", LOCK)}
    for use in held:
        use.close()
        use.close()


def test_what_a_killed_process_has_moved_away_is_removed(tmp_path: Path) -> None:
    environment(tmp_path, "a", 1e9)
    environment(tmp_path, "b", 2e9).rename(tmp_path / "b.removed")
    assert prune(tmp_path, 3) == []
    assert there(tmp_path) == {"a"}


def test_of_one_that_could_not_be_made_nothing_stays_unless_it_is_being_made(tmp_path: Path) -> None:
    for name in ("failed", "begun"):
        (tmp_path / f"{name}{LOCK}").touch()
    InUse(tmp_path / "failed").close()
    begun = InUse(tmp_path / "begun")
    assert prune(tmp_path, 1) == []
    assert set(names_in(tmp_path)) == {"begun.use", f"begun{LOCK}"}
    begun.close()


def test_who_was_waiting_while_one_was_removed_holds_what_is_there_now(tmp_path: Path) -> None:
    made = environment(tmp_path, "a", 1e9)
    before = open_descriptors()
    real = fcntl.flock
    removed: list[str] = []

    def late(fd: int, how: int) -> None:
        if how == fcntl.LOCK_SH and not removed:  # between the opening of the file and its lock
            removed.extend(prune(tmp_path, 0))
        real(fd, how)

    with patch.object(fcntl, "flock", late):
        use = InUse(made)
    assert removed == ["a"]
    made.mkdir()
    assert prune(tmp_path, 0) == []
    use.close()
    assert prune(tmp_path, 0) == ["a"]
    assert open_descriptors() == before


def test_one_that_nobody_has_marked_is_as_old_as_itself(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    os.utime(tmp_path / "old", (1e9, 1e9))
    environment(tmp_path, "new", 2e9)
    before = open_descriptors()
    assert prune(tmp_path, 1) == ["old"]
    assert open_descriptors() == before
