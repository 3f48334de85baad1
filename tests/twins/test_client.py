"""What the proofs about the client find when a rule is broken."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from parallelrun.embedded import guard
from parallelrun.embedded.guard import _words
from parallelrun.embedded.supervisor import Supervisor
from tests.integration.client import test_azure_env as fronts
from tests.integration.client import test_supervisor as supervising
from tests.integration.client.test_supervisor import deaths, mark, supervisor
from tests.twins.sabotage import always, expect_failure, nothing_later, replaced
from tests.unit.client import test_socket_folder as sockets
from tests.unit.client.test_socket_folder import temporary

__all__ = ["deaths", "mark", "supervisor", "temporary"]


def test_without_its_lock_a_folder_in_use_is_removed() -> None:
    with replaced("parallelrun.embedded.socket_folder:_lock", always(True)), expect_failure():
        sockets.test_what_a_killed_owner_left_is_removed_and_what_another_uses_is_not()


def test_without_its_marker_the_folder_of_another_host_is_removed(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with replaced("parallelrun.embedded.socket_folder:_is_marked", always(True)), expect_failure():
        sockets.test_a_folder_of_another_host_is_none_of_ours(temporary, monkeypatch)


def test_a_service_that_has_its_mark_in_its_environment_only_is_found(supervisor: Supervisor, mark: str) -> None:
    unmarked = replaced("parallelrun.embedded.launcher:_with_mark", lambda command, _: list(command))
    with unmarked, expect_failure():
        supervising.test_a_service_that_hides_its_environment_is_known_by_its_command_line(supervisor, mark)


@pytest.mark.skipif(not shutil.which("openssl"), reason="there is no openssl")
def test_a_front_that_leaves_its_connections_open_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fronts, "_PATIENCE_S", 2.0)
    with replaced("parallelrun.azure.front:Front._end_connections", nothing_later), expect_failure():
        fronts.test_a_front_that_is_stopped_has_ended_all_its_connections(tmp_path)


def test_a_guard_that_takes_any_word_for_its_mark_is_found(mark: str) -> None:
    def anywhere(mark: str) -> list[int]:
        word = guard.option(mark)[1].encode()
        processes = [path.name for path in Path("/proc").glob("[0-9]*")]
        return [int(process) for process in processes if word in _words(process, "cmdline")]

    with replaced("parallelrun.embedded.guard:marked", anywhere), expect_failure():
        supervising.test_a_process_that_only_looks_like_ours_is_left_alone(("-c", "{sleep}", "{option}"), mark)
