"""Each mini-batch of the manifest is published once and in order, whether it was handed over or read."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parallelrun_core.folder.decided import Decided
from parallelrun_core.folder.manifest import ManifestWriter, read_manifest, resolve
from parallelrun_core.spec import JobSpec
from parallelrun_core.store.leader_queue import LeaderQueue, Published
from parallelrun_core.wire.message import MAX_MESSAGE_BYTES, REFERENCE, decode, encode_files
from parallelrun_master.publishing import handover as handover_module
from parallelrun_master.publishing import publisher as publisher_module
from parallelrun_master.publishing.handover import Handover
from parallelrun_master.publishing.publisher import Publisher
from parallelrun_master.publishing.scheduling import Scheduler
from tests.unit.core.factories import outcome


class Queue:
    """A queue as the publisher sees it; all is decided at once, so that there is always room."""

    def __init__(self) -> None:
        self.messages: list[bytes] = []
        self.early: dict[int, bytes] = {}
        self.fails = False

    def expedite(self, messages: list[tuple[int, bytes]]) -> int:
        self.early |= dict(messages)
        return len(messages)

    def expedited(self) -> frozenset[int]:
        return frozenset(self.early)

    def checkpoint(self) -> int:
        return len(self.messages)

    def publish(self, first: int, messages: list[bytes]) -> Published:
        if self.fails and messages:
            raise ConnectionError
        if first == len(self.messages):
            self.messages += messages
        return Published(len(self.messages), 0)


def publisher(folder: Path, queue: Queue, handover: Handover | None, decided: Decided | None = None) -> Publisher:
    return Publisher(folder, cast(LeaderQueue, queue), decided or Decided(), handover)


def raw(number: int, name_bytes: int = 0) -> bytes:
    return encode_files([(b"/in", [b"%d" % number + b"x" * name_bytes])], 1)


@contextmanager
def stopped(writer: ManifestWriter) -> Iterator[ManifestWriter]:
    try:
        yield writer
    finally:
        writer.stop()


@contextmanager
def closed(made: Publisher) -> Iterator[Publisher]:
    try:
        yield made
    finally:
        made.close()


STEPS = st.lists(
    st.tuples(st.sampled_from(["schedule"] * 3 + ["publish"] * 3 + ["set back", "fail"]), st.integers(0, 6)),
    max_size=25,
)


@given(
    steps=STEPS, before=st.integers(0, 3), max_bytes=st.sampled_from([200, 1000, 1 << 20]), at_once=st.integers(1, 4)
)
@settings(deadline=None, max_examples=150)
def test_all_is_published_once_and_in_order_whatever_happens(
    steps: list[tuple[str, int]], before: int, max_bytes: int, at_once: int
) -> None:
    with ExitStack() as leaving:
        name = leaving.enter_context(tempfile.TemporaryDirectory())
        patch = leaving.enter_context(pytest.MonkeyPatch.context())
        patch.setattr(handover_module, "_MAX_BYTES", max_bytes)
        patch.setattr(publisher_module, "_CALL_BYTES", 20 * at_once)
        folder, queue, handover = Path(name), Queue(), Handover()
        writer = leaving.enter_context(stopped(ManifestWriter(folder, 1)))
        for number in range(before):  # by a leader before this one
            writer.add(raw(number), 1)
        writer.sync()
        made = leaving.enter_context(closed(publisher(folder, queue, handover)))
        for what, number in [*steps, ("schedule", 1), *[("publish", 0)] * 200]:
            if what == "schedule":
                first = writer.mini_batches
                raws = [raw(first + each) for each in range(number)]
                writer.extend(raws, number)
                writer.sync()
                handover.add(first, raws)
            elif what == "publish":
                made.step(writer.mini_batches)
            elif what == "set back":
                del queue.messages[max(0, len(queue.messages) - number) :]
            else:
                queue.fails = True
                try:
                    made.step(writer.mini_batches)
                except ConnectionError:
                    made.rewind()
                queue.fails = False
        assert queue.messages == [entry.raw for entry in read_manifest(folder)]


def test_what_has_just_been_scheduled_is_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(*_: Any) -> None:
        raise AssertionError("the manifest was read")

    inputs, folder, queue = tmp_path / "inputs", tmp_path / "job", Queue()
    inputs.mkdir()
    folder.mkdir()
    for number in range(5):
        (inputs / f"f{number}").touch()
    spec = JobSpec.parse({"entry_script": "e.py", "inputs": str(inputs), "mini_batch_size": 1})
    monkeypatch.setattr(publisher_module, "ManifestCursor", forbidden)
    scheduler = Scheduler(folder, spec, 1)
    made = publisher(folder, queue, scheduler.handover)
    while scheduler.step(0.0):
        made.step(scheduler.mini_batches)
    made.step(scheduler.mini_batches)
    assert queue.messages == [entry.raw for entry in read_manifest(folder)]
    assert len(queue.messages) == 5


def test_a_message_that_is_too_long_for_redis_is_a_reference(tmp_path: Path) -> None:
    queue, handover = Queue(), Handover()
    long = b"".join(b"%d" % (number * number) for number in range(60_000))
    raws = [raw(0), encode_files([(b"/in", [long])], 1), raw(2)]
    assert len(raws[1]) > MAX_MESSAGE_BYTES
    with stopped(ManifestWriter(tmp_path, 1)) as writer, closed(publisher(tmp_path, queue, handover)) as made:
        for number, each in enumerate(raws):
            writer.extend([each], 1)
            writer.sync()
            handover.add(number, [each])
        while made.step(3):
            pass
    assert [decode(each).kind == REFERENCE for each in queue.messages] == [False, True, False]
    assert [resolve(tmp_path, decode(each)) for each in queue.messages] == [decode(each) for each in raws]


@pytest.mark.parametrize("is_handed_over", [False, True])
def test_what_is_decided_is_published_without_its_files(tmp_path: Path, is_handed_over: bool) -> None:
    queue, handover, decided = Queue(), Handover(), Decided()
    decided.accept(outcome(1))
    raws = [raw(number) for number in range(3)]
    with stopped(ManifestWriter(tmp_path, 1)) as writer, closed(publisher(tmp_path, queue, handover, decided)) as made:
        writer.extend(raws, 3)
        writer.sync()
        if is_handed_over:
            handover.add(0, raws)
        made.step(3)
    assert queue.messages == [raws[0], b"", raws[2]]


def test_what_is_published_out_of_order_is_skipped_when_its_turn_comes(tmp_path: Path) -> None:
    queue = Queue()
    with stopped(ManifestWriter(tmp_path, 1)) as writer:
        for number in range(6):
            writer.add(raw(number), 1)
        writer.sync()
        with closed(publisher(tmp_path, queue, None)) as made:
            made.expedite([3, 5])
            while made.step(6):
                pass
    assert queue.early == {3: raw(3), 5: raw(5)}
    assert queue.messages == [raw(0), raw(1), raw(2), b"", raw(4), b""]
