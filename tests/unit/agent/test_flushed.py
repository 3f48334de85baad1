"""What a crash of the machine may leave in the cache."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from parallelrun_agent.staging import flushed
from parallelrun_agent.staging.cache import StageCache
from parallelrun_agent.staging.flushed import forget_unflushed
from parallelrun_core.storage.interface import Version


def cache_with(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "a").write_bytes(b"\0" * 9)
    return folder


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_what_was_touched_shortly_before_a_crash_is_not_believed(tmp_path: Path) -> None:
    folder = cache_with(tmp_path / "objects")
    forget_unflushed(folder, "boot 1")  # a first start: nobody knows who has left this here
    assert names(folder) == []

    cache_with(folder)
    forget_unflushed(folder, "boot 1")
    assert names(folder) == ["a"], "the same machine, still up"

    forget_unflushed(folder, "boot 2")
    assert names(folder) == []


def test_what_the_disk_had_long_before_the_crash_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = cache_with(tmp_path / "objects")
    (folder / "b").touch()
    old, new = (os.stat(folder / name).st_ctime for name in "ab")
    monkeypatch.setattr(flushed, "_changes", lambda _: iter([(str(folder / "a"), old - 300), (str(folder / "b"), new)]))

    forget_unflushed(folder, "boot 2")

    assert names(folder) == ["a"]


def test_a_restarted_agent_on_the_same_boot_finds_what_it_had(tmp_path: Path) -> None:
    version = Version(3, 0.0, "tag")
    cache = StageCache(tmp_path, 1 << 20)
    cache.reserve(3)
    cache.put("s3://b/k", version, b"abc", str(tmp_path / "used"))

    assert StageCache(tmp_path, 1 << 20).take("s3://b/k", version, str(tmp_path / "again"))
