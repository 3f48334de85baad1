"""Grouping by keys before a table is cut: whole or not at all, whoever leads, and told when there is no room."""

from __future__ import annotations

import errno
import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from parallelrun_core.errors import Fenced, InvalidInput
from parallelrun_core.mltable import plan as plans
from parallelrun_core.mltable.input_plan import InputPlan
from parallelrun_core.mltable.plan import plan_input
from parallelrun_core.spec import JobSpec
from parallelrun_core.spec.fields import Input
from parallelrun_core.wire.message import Piece
from parallelrun_master.planning.input_cuts import InputCuts, KnownInput
from parallelrun_master.planning.shuffling import Shuffle, ShuffleFailed, discard, read_groups, rows_of
from parallelrun_worker.tables.table import Table
from tests.unit.core.factories import noted_syncs

ROWS = 400


class Died(Exception):
    """Stands for a kill."""


class Site(NamedTuple):
    """A job's folder, and the plan of its only input."""

    folder: Path
    plan: InputPlan
    file: Path

    def shuffle(self, term: int, told: Callable[[int, int], object] = lambda *_: None) -> Shuffle:
        return Shuffle(self.folder, 0, self.plan, term, told)

    def run(self, term: int, told: Callable[[int, int], object] = lambda *_: None) -> None:
        """One leader's term; the pieces are small, so that there are many."""
        size = self.file.stat().st_size
        path = os.fsencode(self.file)
        pieces = [Piece(path, start, min(start + 100, size)) for start in range(0, size, 100)]
        for _ in self.shuffle(term, told).run(pieces, lambda: [size]):
            pass

    def rows(self) -> dict[tuple[str | None, ...], list[int]]:
        """What the groups hold."""
        assert (self.folder / rows_of(0)).with_name("groups.jsonl").exists(), "there are no groups"
        table = Table(json.loads(msgspec.json.encode(self.plan)), str(self.folder / "schema.0.json"))
        return {
            tuple(keys): table.read([(str(self.folder / rows_of(0)), start, end, True, -1)])["n"].tolist()
            for start, end, keys in read_groups(self.folder, 0)
        }


EXPECTED = {(f"k{key}",): list(range(key, ROWS, 3)) for key in range(3)}


def site(folder: Path) -> Site:
    (folder / "in").mkdir()
    (folder / "job").mkdir()
    file = folder / "in" / "a.csv"
    file.write_text("k,n\n" + "".join(f"k{number % 3},{number}\n" for number in range(ROWS)))
    plan = plan_input("data", Input(path=str(folder / "in"), transformations=("read_delimited",)), ["k"])
    plan.sample = [str(file)]
    return Site(folder / "job", plan, file)


def die(done: int, total: int) -> None:
    raise Died


def test_only_a_whole_shuffle_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever was killed in the middle has cleaned nothing up; the next one begins anew."""
    here = site(tmp_path)
    with monkeypatch.context() as killed:
        killed.setattr(shutil, "rmtree", lambda *_, **__: None)
        with pytest.raises(Died):
            here.run(1, die)
    assert list(here.folder.iterdir())
    here.run(2)
    assert here.rows() == EXPECTED
    assert [path.name for path in sorted(here.folder.iterdir())] == ["schema.0.json", "shuffled.0"]
    assert sorted(path.name for path in (here.folder / rows_of(0)).parent.iterdir()) == [
        "groups.jsonl", "rows", "sources.json", "warnings.json",
    ]  # fmt: skip


def test_the_first_whole_one_stays_and_a_leader_that_comes_late_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = site(tmp_path)

    def overtaken(done: int, total: int) -> None:
        if not (here.folder / rows_of(0)).exists():
            here.run(3)

    with pytest.raises(Fenced):
        here.run(2, overtaken)
    number = (here.folder / rows_of(0)).stat().st_ino
    synced = noted_syncs(monkeypatch)
    here.run(1, die)  # not even asked
    assert here.folder.stat().st_ino in synced, "who made it may have been killed before it did so"
    assert (here.folder / rows_of(0)).stat().st_ino == number
    assert here.rows() == EXPECTED
    assert not list(here.folder.glob("shuffling.*"))


def test_how_far_it_is_is_told_up_to_the_end(tmp_path: Path) -> None:
    here = site(tmp_path)
    told: list[tuple[int, int]] = []
    here.run(1, lambda done, total: told.append((done, total)))
    size = here.file.stat().st_size
    assert told == sorted(told)
    assert told[-1] == (size, size)
    assert {total for _, total in told} == {size}
    assert len(told) > ROWS * 5 // 100


def test_no_room_is_told_before_anything_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = site(tmp_path)
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=1000))
    with pytest.raises(ShuffleFailed, match=r"takes at least 0\.0 MB in the job folder, and only 0\.0 MB are free"):
        here.run(1)
    assert not list(here.folder.iterdir())


def test_a_disk_that_is_full_in_the_middle_is_waited_for_as_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = site(tmp_path)
    child = tmp_path / "child"
    child.write_text("""#!/bin/sh\necho '{"failed": "disk", "message": "it is full"}'\n""")
    child.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(child))
    with pytest.raises(OSError, match="full") as raised:
        here.run(1)
    assert errno.errorcode[raised.value.errno or 0] == "ENOSPC"


def test_a_process_that_ends_without_a_word_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = site(tmp_path)
    monkeypatch.setattr(sys, "executable", shutil.which("false"))
    with pytest.raises(ShuffleFailed, match="ended with 1"):
        here.run(1)


def test_a_column_that_is_not_there_is_the_fault_of_the_job(tmp_path: Path) -> None:
    here = site(tmp_path)
    here.plan.keys = ["store"]
    with pytest.raises(InvalidInput, match=r"a\.csv: there is no column 'store' to group by; the table has k, n"):
        here.run(1)
    assert not list(here.folder.glob("shuffl*"))


def test_after_a_failover_no_group_is_cut_twice(tmp_path: Path) -> None:
    here = site(tmp_path)
    given: dict[str, Any] = {"path": str(here.file.parent), "transformations": ["read_delimited"]}
    spec = JobSpec.parse({"entry_script": "e.py", "inputs": {"data": given}, "partition_keys": ["k"]})
    first = [each for each in InputCuts(here.folder, spec, KnownInput(), term=1) if each is not None]
    assert len(first) == len(EXPECTED)
    known = KnownInput()
    path = rows_of(0).encode()
    known.pieces.update([(0, path, group.start) for group in read_groups(here.folder, 0)][:2])
    rest = [each for each in InputCuts(here.folder, spec, known, term=2) if each is not None]
    assert rest == first[2:]
    discard(here.folder)
    assert not list(here.folder.glob("shuffl*"))


def test_without_the_libraries_it_is_refused_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plans, "find_spec", lambda name: None if name == "duckdb" else object())
    given = Input(path="/data", transformations=("read_delimited",))
    with pytest.raises(InvalidInput, match=r"install duckdb there: pip install '\.\[tables\]'"):
        plan_input("data", given, ["k"])
    files = Input(path="/data")
    with pytest.raises(InvalidInput, match="no partition format"):
        plan_input("data", files, ["k"])
