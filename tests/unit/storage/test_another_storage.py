"""Another kind of storage is an entry among the storages; checkers, planners and readers notice no difference."""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from parallelrun_api.submission.checks import PathChecks
from parallelrun_core.errors import InvalidInput
from parallelrun_core.folder.decided import Decided
from parallelrun_core.folder.manifest import ManifestWriter, read_manifest
from parallelrun_core.spec import JobSpec
from parallelrun_core.storage import stores, supported
from parallelrun_core.storage.interface import Storage
from parallelrun_core.storage.path_rule import Places
from parallelrun_core.wire.message import Piece, decode, described_of, files_of
from parallelrun_master.planning.changed_inputs import changed_inputs
from parallelrun_master.planning.input_cuts import InputCuts, known_in
from tests.unit.storage.memory import MemoryStorage

LINES = b"".join(b'%d,"a\nb"\n' % number for number in range(1000))


@pytest.fixture
def storage(monkeypatch: pytest.MonkeyPatch) -> MemoryStorage:
    made: Storage = MemoryStorage()
    monkeypatch.setitem(stores.STORAGES, "memory", lambda: made)
    monkeypatch.setattr(supported, "KINDS", supported.KINDS | {"memory"})
    assert isinstance(made, MemoryStorage)
    return made


@pytest.fixture
def plan(tmp_path: Path) -> Callable[..., list[bytes]]:
    """Writes the manifest of a job; returns its messages."""

    def planned(**fields: Any) -> list[bytes]:
        spec = JobSpec.parse({"entry_script": "e.py", "code": str(tmp_path), **fields})
        PathChecks(root=tmp_path / "root", places=Places(roots=[str(tmp_path)])).check(spec, has_zip=False)
        writer = ManifestWriter(tmp_path, 1)
        for cut in InputCuts(tmp_path, spec, known_in(tmp_path)):
            if cut is not None:
                writer.add(cut.raw, cut.items)
        writer.close(order="sorted")
        return [entry.raw for entry in read_manifest(tmp_path)]

    return planned


def pieces(messages: list[bytes]) -> list[Piece]:
    return [piece for raw in messages for piece in described_of(decode(raw)).pieces]


@pytest.mark.parametrize(
    "pattern, names",
    [("", ["a.txt", "d/b.txt", "d/e/c.csv"]), ("/*.txt", ["a.txt"]), ("/**/*.txt", ["a.txt", "d/b.txt"])],
)
def test_files_are_listed_and_cut(
    storage: MemoryStorage, plan: Callable[..., list[bytes]], pattern: str, names: list[str]
) -> None:
    storage.content = {f"memory://open/in/{name}": b"" for name in ("d/e/c.csv", "a.txt", "d/b.txt")}
    messages = plan(inputs=f"memory://open/in{pattern}", mini_batch_size=2)
    assert len(messages) == -(-len(names) // 2)
    files = [os.fsdecode(path) for raw in messages for path in files_of(decode(raw))]
    assert files == [f"memory://open/in/{name}" for name in names]


def test_text_is_cut_at_its_records_by_ranges(storage: MemoryStorage, plan: Callable[..., list[bytes]]) -> None:
    storage.content = {"memory://open/in/a.csv": LINES}
    steps = [{"read_delimited": {"header": "no_header", "support_multi_line": True}}]
    made = pieces(plan(inputs={"data": {"path": "memory://open/in", "transformations": steps}}, mini_batch_size="1kb"))
    parts = [LINES[piece.start : piece.end] for piece in made]
    assert b"".join(parts) == LINES
    assert len(parts) > 5
    assert all(part.endswith(b'b"\n') for part in parts)
    assert storage.ranges, "it has read them from there"


def test_parquet_is_cut_by_its_footer(storage: MemoryStorage, plan: Callable[..., list[bytes]]) -> None:
    file = io.BytesIO()
    pq.write_table(pa.table({"a": range(10_000)}), file, row_group_size=1000)
    storage.content = {"memory://open/in/a.parquet": file.getvalue()}
    fields = {"path": "memory://open/in", "transformations": ["read_parquet"]}
    made = pieces(plan(inputs={"data": fields}, mini_batch_size="rows:2500"))
    assert [(piece.path, piece.start, piece.end) for piece in made] == [
        (b"memory://open/in/a.parquet", start, start + 2500) for start in range(0, 10_000, 2500)
    ]


def test_an_mltable_is_read_and_what_it_names_is_listed(
    storage: MemoryStorage, plan: Callable[..., list[bytes]]
) -> None:
    table = b"paths: [{pattern: 'memory://open/in/*.txt'}]"
    storage.content = {"memory://open/t/MLTable": table, "memory://open/in/a.txt": b"", "memory://open/in/b.csv": b""}
    messages = plan(inputs={"data": {"path": "memory://open/t", "type": "mltable"}})
    assert [files_of(decode(raw)) for raw in messages] == [[b"memory://open/in/a.txt"]]


def test_what_was_changed_or_is_gone_is_noticed(
    storage: MemoryStorage, plan: Callable[..., list[bytes]], tmp_path: Path
) -> None:
    storage.content = {f"memory://open/in/{name}": b"" for name in "ab"}
    plan(inputs="memory://open/in")
    assert changed_inputs(tmp_path, Decided()) == []
    del storage.content["memory://open/in/b"]
    assert changed_inputs(tmp_path, Decided()) == ["memory://open/in/b is gone"]


def test_the_storage_decides_what_a_job_may_use(storage: MemoryStorage, plan: Callable[..., list[bytes]]) -> None:
    with pytest.raises(InvalidInput, match="is not below memory://open"):
        plan(inputs="memory://closed/in")
