"""Cutting loses no file, repeats none, changes no order, and fills every mini-batch but the last."""

from __future__ import annotations

import os
from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from parallelrun_core.storage.interface import Page
from parallelrun_core.wire.message import decode, groups_of, paths_of
from parallelrun_master.planning.cutting import cut, without_known
from parallelrun_master.planning.seen_files import SeenFiles

names = st.binary(min_size=1, max_size=4).map(lambda name: name.replace(b"\0", b"0").replace(b"/", b"1"))
chunks = st.lists(
    st.tuples(st.sampled_from([b"/", b"/a", b"/a/b", b"/c"]), st.lists(names, max_size=9)), max_size=8
)  # fmt: skip


def paths(given_pages: list[Page]) -> list[bytes]:
    return [os.path.join(folder, name) for folder, some in given_pages for name in some]


@given(given_pages=chunks, size=st.integers(1, 12))
@settings(deadline=None, max_examples=200)
def test_each_file_comes_once_in_order_and_all_but_the_last_are_full(given_pages: list[Page], size: int) -> None:
    cuts = list(filter(None, cut(given_pages, size)))
    messages = [decode(each.raw) for each in cuts]
    assert [path for message in messages for path in paths_of(message).split(b"\0")] == paths(given_pages)
    assert [each.items for each in cuts] == [message.items for message in messages]
    assert [each.items for each in cuts] == [len(paths_of(message).split(b"\0")) for message in messages]
    assert all(each.items == size for each in cuts[:-1])
    assert all(0 < each.items <= size for each in cuts)


@given(before=chunks, after=chunks, size=st.integers(1, 5))
@settings(deadline=None, max_examples=100)
def test_what_the_manifest_has_already_is_left_out(before: list[Page], after: list[Page], size: int) -> None:
    known = SeenFiles()
    for each in filter(None, cut(before, size)):
        for folder, some in groups_of(decode(each.raw)):
            known.add(folder, some)
    left = list(without_known(after, known))
    assert Counter(paths(left)) == Counter(paths(after)) - Counter(paths(before))
    assert len(left) == len(after), "however much is left out, others get their turn"


def test_nothing_is_cut_into_nothing() -> None:
    assert list(cut([], 3)) == []
    assert list(cut([(b"/a", [])], 3)) == [None]
