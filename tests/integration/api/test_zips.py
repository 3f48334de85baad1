"""Zips that would do harm: refused as a wrong request, never as a bug, and without a trace."""

from __future__ import annotations

import io
import json
import os
import random
import stat
import struct
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pytest

from parallelrun_core.code import snapshots
from parallelrun_core.code.snapshots import snapshot_zip
from parallelrun_core.errors import InvalidInput, UnsafePath
from parallelrun_core.store import keys
from tests.integration.api.conftest import ENTRY_SCRIPT, Site, footprint

if TYPE_CHECKING:
    from redis import Redis

pytestmark = pytest.mark.integration

Member = tuple[str | zipfile.ZipInfo, bytes]


def archive(*members: Member, compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    """A zip that has a good entry script, and these."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as made:
        made.writestr("main.py", ENTRY_SCRIPT)
        for name, data in members:
            made.writestr(name, data)
    return buffer.getvalue()


def named(name: str) -> Callable[[], bytes]:
    """A zip with a member of this name, whatever the writer of zips thinks of it."""

    def make() -> bytes:
        plain = "n" * len(name.encode())
        return archive((plain, b"x")).replace(plain.encode(), name.encode())

    return make


def of_kind(kind: int) -> Callable[[], bytes]:
    def make() -> bytes:
        info = zipfile.ZipInfo("special")
        info.external_attr = (kind | 0o777) << 16
        return archive((info, b"/etc/passwd"))

    return make


def bomb() -> bytes:
    return archive(("zeros", bytes(50 << 20)))


def many() -> bytes:
    return archive(*((f"{n}.py", b"") for n in range(10_001)))


def truncated() -> bytes:
    whole = archive(("a", os.urandom(5000)))
    return whole[: len(whole) // 2]


def encrypted() -> bytes:
    data = bytearray(archive())
    for mark in (b"PK\x03\x04", b"PK\x01\x02"):
        at = data.index(mark)
        data[at + (6 if mark == b"PK\x03\x04" else 8)] |= 1
    return bytes(data)


def method(number: int) -> Callable[[], bytes]:
    def make() -> bytes:
        data = bytearray(archive())
        struct.pack_into("<H", data, data.index(b"PK\x03\x04") + 8, number)
        struct.pack_into("<H", data, data.index(b"PK\x01\x02") + 10, number)
        return bytes(data)

    return make


def garbled(compression: int) -> Callable[[], bytes]:
    """The compressed bytes of a member are no such thing."""

    def make() -> bytes:
        data = bytearray(archive(("a", bytes(range(256)) * 40), compression=compression))
        at = data.rindex(b"PK\x03\x04")
        data[at + 34 : at + 60] = b"\xff" * 26
        return bytes(data)

    return make


def wrong_sum() -> bytes:
    return archive(("a", b"some text"), compression=zipfile.ZIP_STORED).replace(b"some text", b"same text")


def not_utf8() -> bytes:
    return archive(("ü" * 3, b"x")).replace("ü".encode() * 3, b"\xff\xfe\xfd\xfc\xfb\xfa")


def two_headers_disagree() -> bytes:
    data = archive(("inner", b"x"))
    at = data.index(b"inner")
    return data[:at] + b"outer" + data[at + 5 :]


EVIL: dict[str, Callable[[], bytes]] = {
    "climbs out": named("../evil.py"),
    "climbs out from below": named("a/../../evil.py"),
    "absolute": named("/tmp/evil.py"),
    "only dots": named(".."),
    "backslash": named("..\\evil.py"),
    "drive": named("C:\\evil.py"),
    "line break": named("a\nb.py"),
    "escape": named("a\x1b[2Jb.py"),
    "no name": named("."),
    "name too long": named("n" * 256),
    "path too long": named("/".join(["d" * 200] * 30)),
    "too deep": named("/".join(["d"] * 40)),
    "symbolic link": of_kind(stat.S_IFLNK),
    "character device": of_kind(stat.S_IFCHR),
    "block device": of_kind(stat.S_IFBLK),
    "named pipe": of_kind(stat.S_IFIFO),
    "socket": of_kind(stat.S_IFSOCK),
    "twice but for the case": lambda: archive(("A.py", b"1"), ("a.py", b"2")),
    "a file that is a folder, too": lambda: archive(("a", b"1"), ("a/b", b"2")),
    "a folder that is a file, too": lambda: archive(("a/b", b"1"), ("a", b"2")),
    "bomb": bomb,
    "too many members": many,
    "no zip": lambda: b"#!/bin/sh\n",
    "nothing": lambda: b"",
    "truncated": truncated,
    "encrypted": encrypted,
    "unknown method": method(99),
    "deflated garbage": garbled(zipfile.ZIP_DEFLATED),
    "bzip2 garbage": garbled(zipfile.ZIP_BZIP2),
    "lzma garbage": garbled(zipfile.ZIP_LZMA),
    "wrong checksum": wrong_sum,
    "name in no encoding": not_utf8,
    "headers disagree": two_headers_disagree,
}


@pytest.mark.parametrize("case", EVIL)
def test_it_is_refused_without_a_trace(case: str, api: httpx.Client, site: Site, root: Path, redis: Redis) -> None:
    before = footprint(root)
    spec = {name: value for name, value in site.spec().items() if name != "code"}

    answer = api.post("/v1/jobs", data={"spec": json.dumps(spec)}, files={"code": ("code.zip", EVIL[case]())})

    assert answer.status_code == 422, answer.text
    assert answer.json()["code"] in ("invalid_input", "unsafe_path")
    assert footprint(root) - before <= {"code"}
    assert redis.keys(f"{keys.PREFIX}*") == []


def test_a_bomb_of_small_members(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshots, "CODE", replace(snapshots.CODE, bytes=4 << 20))

    with pytest.raises(InvalidInput, match="more than 4 MiB"):
        snapshot_zip(io.BytesIO(archive(*((f"{n}", bytes(1 << 20)) for n in range(6)))), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_special_bits_are_dropped(tmp_path: Path) -> None:
    info = zipfile.ZipInfo("tool.sh")
    info.external_attr = (stat.S_IFREG | 0o6777) << 16

    name = snapshot_zip(io.BytesIO(archive((info, b"x"))), tmp_path)

    assert stat.S_IMODE((tmp_path / name / "tool.sh").stat().st_mode) == 0o555


def test_damage_of_any_kind_is_never_a_bug(tmp_path: Path) -> None:
    """A seeded walk through small damages: whatever they make of a zip, it is taken or refused."""
    whole = archive(("pkg/a.py", b"x = 1\n" * 50), ("ü.txt", os.urandom(200)))
    dice = random.Random(7)

    for _ in range(1500):
        data = bytearray(whole)
        for _ in range(dice.randint(1, 4)):
            data[dice.randrange(len(data))] = dice.randrange(256)
        try:
            snapshot_zip(io.BytesIO(bytes(data)), tmp_path)
        except (InvalidInput, UnsafePath):
            continue
    assert not list(tmp_path.glob(".incoming-*"))
