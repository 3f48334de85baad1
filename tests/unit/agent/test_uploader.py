"""An upload that is given up has ended when nothing of it is on its way: later tries write the same names."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import pytest

from parallelrun_agent.uploading import uploader
from parallelrun_agent.uploading.uploader import Uploader
from parallelrun_agent.users.worker_user import SAME_USER
from parallelrun_core.storage.objects import ObjectStorage
from parallelrun_core.storage.objects.trouble import AccessDenied

URL = "s3://bucket/out"


class Store:
    """Takes objects when it is told to. What is in `refused` is refused, what is in `hanging` waits for `answers`."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.asked: list[str] = []
        self.refused: set[str] = set()
        self.hanging: set[str] = set()
        self.answers = threading.Event()
        self.overlaps = threading.Event()
        """One object was put while it already was on its way."""

    def put(self, url: str, file: BinaryIO, size_bytes: int) -> None:
        name = url.rpartition("/")[2]
        content = file.read()
        if name in self.asked and name not in self.objects:
            self.overlaps.set()
        self.asked.append(name)
        if name in self.hanging:
            assert self.answers.wait(20)
        if name in self.refused:
            until(lambda: self.hanging <= set(self.asked))  # or those would not be begun any more
            raise AccessDenied(13, "AccessDenied", url)
        self.objects[name] = content
        self.asked.append(f"{name} is there")


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Store:
    store = Store()
    monkeypatch.setattr(ObjectStorage, "put", store.put)
    return store


class Uploads:
    """An uploader of files in a folder."""

    def __init__(self, folder: Path, *, timeout_s: float = 20.0, earlier: Uploads | None = None) -> None:
        self.folder, self._wake = folder, os.pipe()
        before = earlier.uploader if earlier is not None else None
        self.uploader: Uploader = Uploader([URL], SAME_USER, wake=self._wake[1], timeout_s=timeout_s, earlier=before)

    def begin(self, **files: bytes) -> None:
        for name, content in files.items():
            (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / name).write_bytes(content)
        self.uploader.begin("token", "process000", self.folder)

    def failure(self) -> str:
        """Why it has failed; empty if it has not."""
        until(lambda: bool(self.uploader.done), self.uploader)
        failure = self.uploader.done.popleft().failure
        return failure.message if failure else ""

    def close(self) -> None:
        self.uploader.close()
        self.uploader.join()
        for end in self._wake:
            os.close(end)


def until(condition: Callable[[], bool], uploader: Uploader | None = None) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline, "it does not happen"
        time.sleep(0.005)
        if uploader is not None:
            uploader.poll(time.monotonic())


def test_a_try_has_not_failed_while_it_may_still_replace_what_a_later_one_writes(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uploader, "THREADS", 1)
    store.hanging = store.refused = {"a"}
    uploads, waiting = Uploads(tmp_path / "aside", timeout_s=0.05), tmp_path / "waiting" / "0"
    uploads.begin(**{"0/a": b"1"})
    until(lambda: store.asked == ["a"])
    waiting.mkdir(parents=True)
    (waiting / "b").touch()
    uploads.uploader.begin("other", "process001", waiting.parent)
    for _ in range(3):
        uploads.uploader.poll(time.monotonic() + 1)
        assert not uploads.uploader.done
    store.answers.set()
    for _ in range(2):
        assert "0.05 s" in uploads.failure()
    assert not [*tmp_path.iterdir()], "the next try begins with an empty folder"
    uploads.close()


def test_a_file_that_is_refused_waits_for_those_on_their_way(store: Store, tmp_path: Path) -> None:
    store.hanging, store.refused = {"b"}, {"a"}
    uploads = Uploads(tmp_path / "aside")
    uploads.begin(**{"0/a": b"1", "0/b": b"1"})
    until(lambda: sorted(store.asked) == ["a", "b"])
    uploads.uploader.poll(time.monotonic())
    assert not uploads.uploader.done
    store.answers.set()
    assert "AccessDenied" in uploads.failure()
    assert store.asked.count("b") == 1
    uploads.close()


def test_what_is_there_after_all_has_not_failed(store: Store, tmp_path: Path) -> None:
    store.hanging = {"a"}
    uploads = Uploads(tmp_path / "aside", timeout_s=0.05)
    uploads.begin(**{"0/a": b"1"})
    until(lambda: store.asked == ["a"])
    uploads.uploader.poll(time.monotonic() + 1)
    store.answers.set()
    assert uploads.failure() == ""
    uploads.close()


def test_a_large_file_is_read_no_further(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun = threading.Event()

    def put(_: ObjectStorage, url: str, file: BinaryIO, size_bytes: int) -> None:
        begun.set()
        while True:
            file.read(1)

    monkeypatch.setattr(ObjectStorage, "put", put)
    uploads = Uploads(tmp_path / "aside", timeout_s=0.05)
    uploads.begin(**{"0/a": b"1"})
    assert begun.wait(20)
    assert "0.05 s" in uploads.failure()
    uploads.close()


def test_a_new_session_waits_for_what_an_earlier_one_has_on_its_way(store: Store, tmp_path: Path) -> None:
    store.hanging = {"a"}
    first = Uploads(tmp_path / "first")
    first.begin(**{"0/a": b"1"})
    until(lambda: store.asked == ["a"])
    first.uploader.close()
    second = Uploads(tmp_path / "second", earlier=first)
    second.uploader.close()
    third = Uploads(tmp_path / "third", earlier=second)
    third.begin(**{"0/a": b"2"})
    assert not store.overlaps.wait(0.3)
    store.answers.set()
    assert third.failure() == ""
    assert store.asked == ["a", "a is there", "a", "a is there"]
    assert store.objects == {"a": b"2"}
    assert not first.uploader.done
    for each in (first, second, third):
        each.close()


def test_nothing_is_put_if_a_name_is_none_that_an_object_can_have(store: Store, tmp_path: Path) -> None:
    for name, why in (("/".join(["d" * 200] * 6), "1,024 bytes"), (os.fsdecode(b"\xe9"), "must be UTF-8")):
        uploads = Uploads(tmp_path / "aside")
        uploads.begin(**{"0/a": b"1", f"0/{name}": b"1"})
        failure = uploads.failure()
        assert why in failure
        assert failure.encode(), "it can be reported"
        assert not store.asked
        uploads.close()
