"""Files that were listed before: each is recognized as often as it was added, and takes a few bytes."""

from __future__ import annotations

import tracemalloc
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from parallelrun_master.planning.seen_files import SeenFiles

names = st.lists(st.sampled_from([b"a", b"b", b"ab", b"", b"\xff", b"name"]), max_size=12)
folders = st.sampled_from([b"/in", b"/in/a", b"/"])


@given(added=st.lists(st.tuples(folders, names), max_size=6), taken=st.lists(st.tuples(folders, names), max_size=6))
def test_each_is_recognized_as_often_as_it_was_added(
    added: list[tuple[bytes, list[bytes]]], taken: list[tuple[bytes, list[bytes]]]
) -> None:
    seen, model = SeenFiles(buckets=2), Counter[tuple[bytes, bytes]]()
    for folder, some in added:
        seen.add(folder, some)
        model.update((folder, name) for name in some)
    assert bool(seen) == bool(model)
    for folder, some in taken:
        fresh = []
        for name in some:
            if not model[folder, name]:
                fresh.append(name)
            else:
                model[folder, name] -= 1
        assert seen.take(folder, some) == fresh


def test_a_file_takes_a_dozen_bytes() -> None:
    """As many in each bucket as when there are twenty million files; and no object for any of them."""
    seen, count = SeenFiles(buckets=200), 60_000
    tracemalloc.start()
    try:
        seen.add(b"/a/long/path/to/a/folder", (b"img_%09d_with_a_long_name.jpg" % number for number in range(count)))
        used, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert used < 13 * count
    assert seen.take(b"/a/long/path/to/a/folder", [b"img_%09d_with_a_long_name.jpg" % 59_999, b"other"]) == [b"other"]
