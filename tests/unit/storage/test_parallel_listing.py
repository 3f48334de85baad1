"""Large folders are listed at the same time, and nobody can tell from what comes."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import suppress
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parallelrun_core.storage.objects import listing
from parallelrun_core.storage.objects.listing import ObjectListing
from parallelrun_core.storage.objects.parallel_listing import Key, folders_at_once, pages_at_once
from parallelrun_core.storage.objects.trouble import StoreError

_PAGE = 5


class Store:
    """Keys in the order of their bytes, `_PAGE` at a time. The listings of single folders begin together."""

    def __init__(self, keys: list[str], together: int = 1) -> None:
        self._keys = sorted(set(keys), key=str.encode)
        self._together = threading.Barrier(together)
        self.requests = 0

    def pages(self, folder: str, after: str) -> Iterator[list[Key]]:
        prefix = f"{folder}/" if folder else ""
        keys = [key for key in self._keys if key.startswith(prefix) and key.encode() > after.encode()]
        for start in range(0, max(1, len(keys)), _PAGE):
            self.requests += 1
            if after and start == 0 and folder != "in":
                with suppress(threading.BrokenBarrierError):
                    self._together.wait(timeout=20)
            yield [{"path": key} for key in keys[start : start + _PAGE]]


def listed(store: Store, folder: str = "", at_once: int = 3) -> list[str]:
    return [key["path"] for page in pages_at_once(store.pages, folder, at_once) for key in page]


NAMES = st.sampled_from(["a", "b", "a.txt", "a~", "~~~~~~~~~", "é", "\U0001f600", "a b", "%41", "0", "-", "A"])
KEYS = st.lists(st.lists(NAMES, min_size=1, max_size=3).map("/".join), max_size=60)


@given(KEYS, st.sampled_from(["", "a", "a/b"]), st.integers(1, 4))
def test_every_key_comes_once_and_in_order(keys: list[str], folder: str, at_once: int) -> None:
    many = [*keys, *(f"{key}/n{number}" for key in keys for number in range(7))]
    expected = sorted({key for key in many if key.startswith(f"{folder}/" if folder else "")}, key=str.encode)
    assert listed(Store(many), folder, at_once) == expected


def test_large_folders_are_listed_at_the_same_time_with_no_request_more() -> None:
    keys = [f"in/d{folder}/f{number:03}" for folder in range(3) for number in range(50)]
    alone = Store(keys)
    assert sum(len(page) for page in alone.pages("in", "")) == 150
    store = Store(keys, together=3)

    assert listed(store, "in") == sorted(keys)

    assert not store._together.broken, "three of its requests never were on their way together"
    assert store.requests <= alone.requests + 1, "the scout may ask what is behind the last folder"


def test_a_flat_folder_is_listed_as_ever() -> None:
    store = Store([f"in/f{number:03}" for number in range(53)])
    assert len(listed(store, "in")) == 53
    assert store.requests == 11


def test_what_fails_fails_in_its_place() -> None:
    class Broken(Store):
        def pages(self, folder: str, after: str) -> Iterator[list[Key]]:
            if folder == "in/d1":
                raise OSError("throttled")
            yield from super().pages(folder, after)

    pages = pages_at_once(Broken([f"in/d{n}/f{m:02}" for n in range(3) for m in range(30)]).pages, "in", 2)
    seen: list[str] = []
    with pytest.raises(OSError, match="throttled"):
        seen.extend(key["path"] for page in pages for key in page)
    assert seen[-1] < "in/d2"


def test_threads_end_when_nobody_reads_any_more() -> None:
    before = threading.active_count()
    pages = pages_at_once(Store([f"in/d{n}/f{m:03}" for n in range(9) for m in range(200)]).pages, "in", 3)
    next(pages)
    pages.close()  # type: ignore[attr-defined]
    deadline = threading.Event()
    for _ in range(100):
        if threading.active_count() <= before:
            return
        deadline.wait(0.1)
    pytest.fail(f"{threading.enumerate()} are left")


def test_buckets_without_an_order_are_listed_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PARALLELRUN_LIST_AT_ONCE", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)
    assert folders_at_once("s3://photos") > 1
    assert folders_at_once("s3://photos--use1-az4--x-s3") == 1


class NoOrder(Store):
    def pages(self, folder: str, after: str) -> Iterator[list[Key]]:
        return (page[::-1] for page in super().pages(folder, after))


class NoOffset(Store):
    def pages(self, folder: str, after: str) -> Iterator[list[Key]]:
        return super().pages(folder, "")


@pytest.mark.parametrize("kind", [NoOrder, NoOffset])
def test_a_store_without_the_order_that_this_takes_is_refused(kind: type[Store]) -> None:
    with pytest.raises(StoreError, match="PARALLELRUN_LIST_AT_ONCE=1"):
        listed(kind([f"in/d{folder}/f{number:03}" for folder in range(3) for number in range(50)]), "in")


def test_empty_objects_are_asked_for_together_and_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    together, asked = threading.Barrier(8), list[str]()

    def single(url: str, address: object) -> object:
        asked.append(url)
        if url == "s3://b/in":
            return None
        together.wait(timeout=20)
        return None if url.endswith("folder") else SimpleNamespace(size_bytes=0)

    page = [{"path": f"in/{name}", "size": 0} for name in (*"abcdef", "folder", "g")] + [{"path": "in/z", "size": 1}]
    monkeypatch.setattr(listing, "single", single)
    monkeypatch.setattr(listing, "version_of", lambda meta: meta)
    monkeypatch.setattr(ObjectListing, "_pages", lambda *_: iter([page]))
    assert [names for _, names in ObjectListing("s3://b/in")] == [[b"a", b"b", b"c", b"d", b"e", b"f", b"g", b"z"]]
    assert sorted(asked) == ["s3://b/in", *sorted(f"s3://b/in/{name}" for name in ("folder", *"abcdefg"))]
