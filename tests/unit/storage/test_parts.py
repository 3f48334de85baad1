"""Large objects are uploaded in larger parts, and fewer of them at once: memory stays within its limit."""

from __future__ import annotations

import threading
from itertools import pairwise

import pytest

from parallelrun_core.storage.objects.uploads import parts
from parallelrun_core.storage.objects.uploads.parts import Parts, Size

MOST_BYTES = 80 << 20


def test_no_object_takes_more_memory_and_large_ones_are_possible() -> None:
    assert all(size.part_bytes * (size.at_once + 1) <= MOST_BYTES for size in parts.SIZES)
    firsts = [0, *(size.until for size in parts.SIZES)]
    counts = [until - first for first, until in pairwise(firsts)]
    whole = sum(count * size.part_bytes for count, size in zip(counts, parts.SIZES, strict=True))
    assert (firsts[-1], whole > 290e9) == (parts.MAX_PARTS, True)


def test_parts_grow_and_nothing_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "SIZES", (Size(2, 4, 3), Size(5, 6, 2), Size(10_000, 10, 1)))
    content = bytes(range(256))
    uploaded: dict[int, bytes] = {}
    at_once: dict[int, int] = {}
    lock, busy = threading.Lock(), 0
    has_two = threading.Event()

    def upload(number: int, part: memoryview) -> str:
        nonlocal busy
        with lock:
            busy += 1
            at_once[number] = busy
            if busy == 2:
                has_two.set()
        has_two.wait(10)
        with lock:
            uploaded[number] = bytes(part)
            busy -= 1
        return str(number)

    made = Parts(upload)
    try:
        for at in range(0, len(content), 7):
            made.write(memoryview(content[at : at + 7]))
        tags = made.finish()
    finally:
        made.stop()
    assert tags == [str(number) for number in range(1, len(uploaded) + 1)]
    assert b"".join(uploaded[number] for number in sorted(uploaded)) == content
    assert [len(uploaded[number]) for number in range(1, 9)] == [4, 4, 6, 6, 6, 10, 10, 10]
    assert has_two.is_set()
    assert {count for number, count in at_once.items() if number > 7} == {1}
