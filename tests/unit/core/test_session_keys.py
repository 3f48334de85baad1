"""The keys with which sessions seal what they report."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from parallelrun_core.folder.session_keys import SessionKey, read_key
from tests.unit.core.factories import noted_syncs


def test_a_key_is_durable_before_it_counts_and_only_its_owner_can_read_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced = noted_syncs(monkeypatch)
    key = SessionKey(tmp_path / "keys", "node-1")
    assert read_key(tmp_path / "keys", "node-1") is None
    key.publish()
    key.publish()
    assert read_key(tmp_path / "keys", "node-1") == key.value
    assert {(tmp_path / "keys").stat().st_ino, (tmp_path / "keys" / "node-1").stat().st_ino} <= synced
    assert (tmp_path / "keys").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "keys" / "node-1").stat().st_mode & 0o777 == 0o600


def test_no_two_sessions_have_the_same_key(tmp_path: Path) -> None:
    assert SessionKey(tmp_path, "a").value != SessionKey(tmp_path, "a").value


def test_a_key_that_could_not_be_stored_is_stored_later(tmp_path: Path) -> None:
    key = SessionKey(tmp_path / "later" / "keys", "node-1")
    with pytest.raises(OSError, match="No such file"):
        key.publish()
    (tmp_path / "later").mkdir()
    key.publish()
    assert read_key(tmp_path / "later" / "keys", "node-1") == key.value


@pytest.mark.parametrize(
    "session", ["../secret", "/dev/zero", ".", "..", "", "a/b", "\0", "\ufffd", "x" * 200, "link", "pipe"]
)
def test_of_a_session_that_has_none_there_is_no_key(tmp_path: Path, session: str) -> None:
    """Whoever writes to Redis chooses the name."""
    keys = tmp_path / "keys"
    keys.mkdir()
    (tmp_path / "secret").write_bytes(bytes(32))
    (keys / "link").symlink_to(tmp_path / "secret")
    os.mkfifo(keys / "pipe")
    assert read_key(keys, session) is None


@pytest.mark.parametrize("content", [b"", bytes(31), bytes(33)])
def test_a_key_that_is_damaged_is_none(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "node-1").write_bytes(content)
    assert read_key(tmp_path, "node-1") is None
