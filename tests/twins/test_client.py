"""What the proofs about the client find when a rule is broken."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.twins.sabotage import always, expect_failure, replaced
from tests.unit.client import test_socket_folder as sockets
from tests.unit.client.test_socket_folder import temporary

__all__ = ["temporary"]


def test_without_its_lock_a_folder_in_use_is_removed() -> None:
    with replaced("parallelrun.embedded.socket_folder:_lock", always(True)), expect_failure():
        sockets.test_what_a_killed_owner_left_is_removed_and_what_another_uses_is_not()


def test_without_its_marker_the_folder_of_another_host_is_removed(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with replaced("parallelrun.embedded.socket_folder:_is_marked", always(True)), expect_failure():
        sockets.test_a_folder_of_another_host_is_none_of_ours(temporary, monkeypatch)
