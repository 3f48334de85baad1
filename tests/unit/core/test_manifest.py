"""The manifest grows, changes hands, and closes: a cursor sees each mini-batch once, in order."""

from __future__ import annotations

import hashlib
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parallelrun_core.folder import manifest, term_log
from parallelrun_core.folder.manifest import (
    Closing,
    ManifestCursor,
    ManifestWriter,
    last_closing,
    read_closing,
    read_manifest,
    resolve,
)
from parallelrun_core.folder.record_log import RecordWriter
from parallelrun_core.wire import message


def raw(number: int) -> bytes:
    return message.encode_files([(b"/in", [b"%d" % number])], 1)


def ids(folder: Path) -> list[tuple[int, bytes]]:
    return [(entry.mini_batch, entry.raw) for entry in read_manifest(folder)]


def drain(cursor: ManifestCursor) -> list[tuple[int, bytes]]:
    found = []
    while (entry := cursor.read()) is not None:
        found.append((entry.mini_batch, entry.raw))
    return found


def closing_of(folder: Path) -> Closing | None:
    """What a reader of the whole and a reader of its end agree on."""
    closing = read_closing(folder)
    assert last_closing(folder) == closing
    return closing


@given(
    batches=st.lists(st.integers(0, 6), min_size=1, max_size=6),
    heirs=st.sets(st.integers(1, 5)),
    first=st.integers(0, 12),
    close=st.booleans(),
)
@settings(deadline=None, max_examples=30)
def test_a_cursor_sees_each_mini_batch_once_at_any_point_of_growth(
    batches: list[int], heirs: set[int], first: int, close: bool
) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        writer = ManifestWriter(folder, 1)
        written = 0
        cursor = ManifestCursor(folder, first=0)
        seen: list[tuple[int, bytes]] = []
        for step, count in enumerate(batches):
            if step in heirs:
                writer.sync()
                writer._log.close()
                writer = ManifestWriter(folder, writer.term + 1)
                cursor.close()
                # Cursors belong to a leader, so each leader has its own.
                cursor = ManifestCursor(folder, first=len(seen))
            for _ in range(count):
                assert writer.add(raw(written), 1) == written
                written += 1
            writer.sync()
            seen += drain(cursor)
            assert seen == [(number, raw(number)) for number in range(written)]
        assert writer.mini_batches == writer.items == written
        assert closing_of(folder) is None
        if close:
            closing = writer.close(order="sorted")
            assert closing_of(folder) == closing
            assert (closing.mini_batches, closing.items, closing.order) == (written, written, "sorted")
            assert closing.sha256 == hashlib.sha256(b"".join(map(raw, range(written)))).hexdigest()
        else:
            writer._log.close()
        assert drain(cursor) == []
        assert cursor.read() is None
        assert ids(folder) == seen
        cursor.close()
        late = ManifestCursor(folder, first=first)
        assert drain(late) == seen[first:]
        late.close()


def test_an_entry_says_where_its_message_is(tmp_path: Path) -> None:
    for term in (1, 2, 5):
        writer = ManifestWriter(tmp_path, term)
        for number in range(3):
            writer.add(raw(100 * term + number), 1)
        writer.sync()
        writer._log.close()
    for entry in read_manifest(tmp_path):
        reference = message.decode(message.encode_reference(1, entry.term, entry.offset))
        assert resolve(tmp_path, reference) == message.decode(entry.raw)
    cursor = ManifestCursor(tmp_path)
    for entry in read_manifest(tmp_path):
        assert cursor.read() == entry
    cursor.close()


def test_a_full_message_resolves_to_itself(tmp_path: Path) -> None:
    full = message.decode(raw(1))
    assert resolve(tmp_path, full) is full


def test_an_empty_manifest_is_closed_too(tmp_path: Path) -> None:
    ManifestWriter(tmp_path, 1).close(order="sorted")
    closing = closing_of(tmp_path)
    assert closing is not None
    assert closing.mini_batches == 0
    assert ids(tmp_path) == []
    cursor = ManifestCursor(tmp_path)
    assert cursor.read() is None
    cursor.close()


def test_a_job_without_a_manifest_has_no_mini_batches(tmp_path: Path) -> None:
    assert ids(tmp_path) == []
    assert closing_of(tmp_path) is None
    cursor = ManifestCursor(tmp_path)
    assert cursor.read() is None
    cursor.close()


def test_a_record_that_was_half_written_is_not_counted_by_the_heir(tmp_path: Path) -> None:
    first = ManifestWriter(tmp_path, 1)
    first.add(raw(0), 1)
    first.add(raw(1), 1)
    first.sync()
    path = term_log.file_of(tmp_path, "manifest", 1)
    path.write_bytes(path.read_bytes()[:-1])
    heir = ManifestWriter(tmp_path, 2)
    assert heir.mini_batches == 1
    assert heir.add(raw(9), 1) == 1
    heir.sync()
    heir._log.close()
    assert ids(tmp_path) == [(0, raw(0)), (1, raw(9))]
    first._log.close()


def test_a_paused_leader_adds_nothing_any_more(tmp_path: Path) -> None:
    paused = ManifestWriter(tmp_path, 1)
    paused.add(raw(0), 1)
    paused.sync()
    heir = ManifestWriter(tmp_path, 2)
    paused.add(raw(66), 1)
    paused.close(order="sorted")
    assert heir.add(raw(1), 1) == 1
    heir.sync()
    assert ids(tmp_path) == [(0, raw(0)), (1, raw(1))]
    assert closing_of(tmp_path) is None
    closing = heir.close(order="listing")
    assert closing_of(tmp_path) == closing
    assert closing.mini_batches == 2


def test_a_leader_that_writes_while_its_heir_begins_is_counted_as_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the heir's header accepts and what the heir has counted must be the same, or every id shifts."""
    paused = ManifestWriter(tmp_path, 1)
    paused.add(raw(0), 1)
    paused.sync()

    def it_wakes_just_before(folder: Path, name: str, term: int) -> RecordWriter:
        paused.add(raw(1), 1)
        paused.sync()
        return term_log.open_term(folder, name, term)

    monkeypatch.setattr(manifest, "open_term", it_wakes_just_before)
    heir = ManifestWriter(tmp_path, 2)
    added = heir.add(raw(2), 1)
    closing = heir.close(order="sorted")
    paused._log.close()
    assert (added, raw(2)) in ids(tmp_path)
    assert closing.mini_batches == len(ids(tmp_path))


def test_a_closed_manifest_stays_closed_for_an_heir(tmp_path: Path) -> None:
    closing = ManifestWriter(tmp_path, 1).close(order="sorted")
    ManifestWriter(tmp_path, 2).stop()
    assert closing_of(tmp_path) == closing


def test_a_file_whose_name_looks_like_the_end_of_a_manifest_is_not_its_end(tmp_path: Path) -> None:
    writer = ManifestWriter(tmp_path, 1)
    writer.add(message.encode_files([(b"/data", [b"\xc1closed{}"])], 1), 1)
    writer.sync()
    assert closing_of(tmp_path) is None
    closing = writer.close(order="sorted")
    assert closing_of(tmp_path) == closing


def test_a_term_has_one_manifest(tmp_path: Path) -> None:
    ManifestWriter(tmp_path, 1)._log.close()
    with pytest.raises(FileExistsError):
        ManifestWriter(tmp_path, 1)
