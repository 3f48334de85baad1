"""What the race finds when what was opened is not looked at where it is.

Here nobody has to be quick: a path is swapped whenever it is about to be opened, of which Python tells an audit hook.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path

import pytest

from parallelrun_agent.users.worker_user import WorkerUser
from tests.security import test_races as races
from tests.twins.sabotage import expect_failure, without

_ATTEMPTS = 8
_OPENS = frozenset({"open", "os.mkdir", "os.scandir"})

ABOUT_TO_OPEN: list[Callable[[str], None]] = []
"""Asked with each path that this process is about to open; an audit hook can't be removed."""


def _tell(event: str, arguments: tuple[object, ...]) -> None:
    if ABOUT_TO_OPEN and event in _OPENS and isinstance(arguments[0], str | bytes | os.PathLike):
        ABOUT_TO_OPEN[-1](os.fsdecode(arguments[0]))


@pytest.fixture(scope="module", autouse=True)
def _hook() -> None:
    sys.addaudithook(_tell)


class Swap:
    """A path that is a link for one opening of each attempt: for the first one, then the second one, and so on."""

    def __init__(self, path: Path, target: Path) -> None:
        self._path, self._target, self._aside = path, target, path.with_name(f"{path.name}-aside")
        self._attempts = self._openings = 0
        self._is_busy = False

    def attempt(self) -> int:
        """Begin another attempt; returns how often the path was swapped, as the race asks."""
        self.restore()
        self._attempts, self._openings = self._attempts + 1, 0
        return 0 if self._attempts <= _ATTEMPTS else races.SWAPS

    def about_to_open(self, opened: str) -> None:
        """Swap it if this is the opening, or put it back if it is opened again, or something else that is not in it."""
        if self._is_busy:
            return
        self._is_busy = True
        is_below = self._path in Path(opened).parents
        with suppress(OSError):
            if not is_below:
                self.restore()
            if (is_below or opened in (str(self._path), self._path.name)) and not self._path.is_symlink():
                self._openings += 1
                if self._openings == self._attempts:
                    self._path.rename(self._aside)
                    self._path.symlink_to(self._target)
        self._is_busy = False

    def restore(self) -> None:
        """Let the path be what it was."""
        if self._path.is_symlink():
            self._path.unlink()
            self._aside.rename(self._path)


@contextmanager
def swapped_when_opened(path: Path, target: Path) -> Iterator[Callable[[], int]]:
    """Stand in for `races.swapped`."""
    swap = Swap(path, target)
    ABOUT_TO_OPEN.append(swap.about_to_open)
    try:
        yield swap.attempt
    finally:
        ABOUT_TO_OPEN.pop()
        swap.restore()


@pytest.fixture(autouse=True)
def _swapped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(races, "swapped", swapped_when_opened)


@pytest.mark.parametrize("part", ["code", "file", "subfolder"])
def test_code_that_is_checked_by_its_name_alone_is_found(part: str, tmp_path: Path) -> None:
    places = races.places_in(tmp_path)
    with without("paths.beneath"), expect_failure():
        races.test_code_that_becomes_a_link_while_it_is_copied(places, part)


def test_an_ignore_file_that_is_read_wherever_it_is_is_found(tmp_path: Path) -> None:
    places = races.places_in(tmp_path)
    with without("paths.ignore_file"), expect_failure():
        races.test_code_that_becomes_a_link_while_it_is_copied(places, "ignore file")


@pytest.mark.parametrize("part", ["", "Dockerfile", "deep/deeper"])
def test_what_an_image_is_built_of_that_is_checked_by_its_name_alone_is_found(part: str, tmp_path: Path) -> None:
    places = races.places_in(tmp_path)
    with without("paths.beneath"), expect_failure():
        races.test_what_an_image_is_built_of_that_becomes_a_link_while_it_is_copied(places, part)


@pytest.mark.parametrize(
    "race",
    [
        races.test_an_input_that_becomes_a_link_while_it_is_listed,
        partial(races.test_an_output_that_becomes_a_link_while_it_is_created, below=""),
        partial(races.test_an_output_that_becomes_a_link_while_it_is_created, below="deep{number}/"),
        races.test_a_tables_log_that_becomes_a_link_while_it_is_copied,
    ],
    ids=["listing", "output", "output in a new folder", "log"],
)
def test_whatever_is_checked_by_its_name_alone_is_found(race: Callable[[Path], None], tmp_path: Path) -> None:
    places = races.places_in(tmp_path)
    with without("paths.beneath"), expect_failure():
        race(places)


def test_an_input_that_is_checked_by_its_name_alone_is_found(tmp_path: Path) -> None:
    places = races.places_in(tmp_path)
    with without("paths.beneath"), expect_failure():
        races.test_an_input_that_becomes_a_link_while_it_is_opened(places, "entry.py")


def test_a_table_file_that_is_checked_by_its_name_alone_is_found(tmp_path: Path) -> None:
    places = races.places_in(tmp_path)
    with without("paths.beneath"), expect_failure():
        races.test_a_table_file_that_becomes_a_link_while_it_is_read(places, "MLTable", "")


@pytest.mark.skipif(os.getuid() != 0, reason="only root can act as another user")
def test_a_model_that_is_copied_by_the_agent_itself_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(WorkerUser, "acting", nullcontext)
    with expect_failure():
        races.test_a_model_that_becomes_a_link_while_its_folder_is_made("")


@pytest.mark.integration
@pytest.mark.parametrize("name", races.BY_NAME)
def test_a_submitter_whose_code_is_checked_by_its_name_alone_is_found(name: str) -> None:
    with expect_failure():
        races.check_attack(name, "paths.beneath")
