"""A bag of file names: it knows each again as often as it was put in, and needs a few bytes for it."""

from __future__ import annotations

import sys
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from parallelrun_master.planning.name_bag import NameBag

names = st.lists(st.sampled_from([b"a", b"b", b"ab", b"", b"\xff", b"name"]), max_size=12)
folders = st.sampled_from([b"/in", b"/in/a", b"/"])


@given(put=st.lists(st.tuples(folders, names), max_size=6), taken=st.lists(st.tuples(folders, names), max_size=6))
def test_each_is_known_again_as_often_as_it_was_put_in(
    put: list[tuple[bytes, list[bytes]]], taken: list[tuple[bytes, list[bytes]]]
) -> None:
    bag, model = NameBag(buckets=2), Counter[tuple[bytes, bytes]]()
    for folder, some in put:
        bag.add(folder, some)
        model.update((folder, name) for name in some)
    assert bool(bag) == bool(model)
    for folder, some in taken:
        fresh = []
        for name in some:
            if not model[folder, name]:
                fresh.append(name)
            else:
                model[folder, name] -= 1
        assert bag.take(folder, some) == fresh


def test_a_file_takes_a_dozen_bytes() -> None:
    """As many in each bucket as when there are twenty million files; and no object for any of them."""
    bag, count = NameBag(buckets=200), 60_000
    bag.add(b"/a/long/path/to/a/folder", (b"img_%09d_with_a_long_name.jpg" % number for number in range(count)))
    size = sum(map(sys.getsizeof, bag._buckets.values()))
    assert size < 13 * count
    assert {type(bucket) for bucket in bag._buckets.values()} == {bytearray}
    assert bag.take(b"/a/long/path/to/a/folder", [b"img_%09d_with_a_long_name.jpg" % 59_999, b"other"]) == [b"other"]
