"""Where a cluster in the background says how to reach it, and when that counts."""

from pathlib import Path

import msgspec
import pytest

from parallelrun.background.lock import FolderLock
from parallelrun.background.state import BackgroundCluster, lock_file, running, state_file
from parallelrun.embedded.background import stop
from parallelrun_core.service.state_folder import state_folder


@pytest.mark.parametrize(
    "base, expected", [("/state", "/state/parallelrun"), ("relative", "/home/x/.local/state/parallelrun")]
)
def test_state_is_where_the_standard_wants_it(monkeypatch: pytest.MonkeyPatch, base: str, expected: str) -> None:
    monkeypatch.setenv("HOME", "/home/x")
    monkeypatch.setenv("XDG_STATE_HOME", base)

    assert state_folder() == Path(expected)


def test_a_state_file_counts_only_while_its_process_lives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    state_folder().mkdir()
    state = BackgroundCluster(url="http://127.0.0.1:1", token="t", pid=1, home="/h", started="now")
    state_file().write_bytes(msgspec.json.encode(state))

    assert running() is None
    assert stop() is False
    lock = FolderLock.take(lock_file())
    assert lock is not None
    assert running() == state
    state_file().write_bytes(b"{")
    assert running() is None
    lock.release()
