"""Each file of a mini-batch has the version that was listed, however the listing is cut."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parallelrun_core.storage.interface import Page, Version, packed, unpacked
from parallelrun_core.storage.leftovers import LeftoverNames
from parallelrun_core.wire.message import (
    DescribedMiniBatch,
    decode,
    described_of,
    described_paths,
    encode_described,
    join_groups,
)
from parallelrun_master.planning.cutting import cut, without_known
from parallelrun_master.planning.seen_files import SeenFiles
from parallelrun_master.planning.versions import Versions

TAGS = ['"9dd4e461268c8034f5c8564e155c67a6"', '"9dd4e461268c8034f5c8564e155c67a6-17"', "0x8DABCDEF", 'W/"weak"']


@pytest.mark.parametrize("tag", TAGS)
def test_a_version_comes_back_as_it_was(tag: str) -> None:
    assert unpacked(packed(Version(1 << 40, 1.5, tag))) == Version(1 << 40, 0.0, tag)


def test_a_hash_takes_few_bytes_and_without_a_tag_the_time_counts() -> None:
    assert len(packed(Version(1, 1.5, TAGS[0])).tag) == 17
    assert unpacked(packed(Version(1, 1.5))) == Version(1, 1.5)


class _Listing:
    is_sorted = True

    def __init__(self, pages: Sequence[Page]) -> None:
        self._pages = pages
        self.versions: Sequence[Version] | None = None
        self.markers = LeftoverNames()

    def __iter__(self) -> Iterator[Page]:
        for folder, names in self._pages:
            self.versions = [_version(folder, name) for name in names]
            yield folder, names


def _version(folder: bytes, name: bytes) -> Version:
    return Version(len(name), 0.0, f'"{(folder + name).hex()}"')


@given(
    sizes=st.lists(st.integers(1, 7), max_size=6), known=st.sets(st.integers(0, 40)), mini_batch=st.integers(1, 5)
)  # fmt: skip
def test_however_a_listing_is_cut_files_and_versions_stay_together(
    sizes: list[int], known: set[int], mini_batch: int
) -> None:
    pages = [(b"s3://b/%d" % at, [b"%d" % (at * 10 + each) for each in range(size)]) for at, size in enumerate(sizes)]
    seen = SeenFiles()
    for folder, names in pages:
        seen.add(folder, [name for name in names if int(name) in known])
    versions = Versions()

    def encode(groups: list[Page], items: int) -> bytes:
        described = DescribedMiniBatch(0, [], [], join_groups(groups), versions.take(groups))
        return encode_described(described, items)

    fresh = versions.keep_only(without_known(versions.noted(_Listing(pages)), seen))
    messages = [described_of(decode(each.raw)) for each in cut(fresh, mini_batch, encode) if each is not None]

    got = [each for message in messages for each in zip(described_paths(message), message.versions, strict=True)]
    wanted = [(folder, name) for folder, names in pages for name in names if int(name) not in known]
    assert got == [(os.path.join(folder, name), packed(_version(folder, name))) for folder, name in wanted]


def test_a_file_that_is_listed_twice_has_its_version_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    class Store:
        def version(self, path: bytes) -> Version:
            return _version(*os.path.split(path))

    monkeypatch.setattr("parallelrun_master.planning.versions.storage_of", lambda _: Store())
    page: Page = (b"s3://b/in", [b"one", b"two"])
    versions = Versions()
    for _ in versions.keep_only(versions.noted(_Listing([page, page]))):
        pass

    got = versions.take([page]) + versions.take([page])
    assert got == [packed(_version(page[0], name)) for name in page[1]] * 2
