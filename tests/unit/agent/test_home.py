"""The home of an agent whose workers are other users: nobody else puts anything there."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from parallelrun_agent.users.home import home_of, keep_to_closed_home

NOBODYS_UID = 20_501


def open_to_all(folder: Path) -> Path:
    folder.mkdir()
    folder.chmod(0o777)
    return folder


def below_one_that_is_open(folder: Path) -> Path:
    below = open_to_all(folder) / "below"
    below.mkdir()
    return below


def for_temporary_files(folder: Path) -> Path:
    folder.mkdir()
    folder.chmod(0o1777)
    return folder


def not_there_yet(folder: Path) -> Path:
    return for_temporary_files(folder) / "home"


def of_somebody_else(folder: Path) -> Path:
    folder.mkdir()
    os.chown(folder, NOBODYS_UID, NOBODYS_UID)
    return folder


def of_another_group(folder: Path) -> Path:
    folder.mkdir()
    os.chown(folder, -1, NOBODYS_UID)
    folder.chmod(0o775)
    return folder


def a_link_of_somebody_else(folder: Path) -> Path:
    link = for_temporary_files(folder) / "link"
    link.symlink_to(of_somebody_else(folder / "elsewhere"))
    return link


OPEN = [open_to_all, below_one_that_is_open, for_temporary_files, not_there_yet]
OPEN_BY_OWNER = [of_somebody_else, of_another_group, a_link_of_somebody_else]


@pytest.mark.parametrize(
    "make",
    [
        *OPEN,
        *(
            pytest.param(each, marks=pytest.mark.skipif(os.getuid() != 0, reason="only root can give files away"))
            for each in OPEN_BY_OWNER
        ),
    ],
)
def test_a_home_that_others_can_fill_is_left(
    make: Callable[[Path], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = make(tmp_path / "home")
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(home))

    keep_to_closed_home()

    assert os.environ["HOME"] == "/"
    assert {"XDG_CONFIG_HOME", "XDG_DATA_HOME"}.isdisjoint(os.environ)


def test_a_home_that_nobody_else_can_fill_stays_by_its_own_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    link = for_temporary_files(tmp_path / "shared") / "link"
    link.symlink_to(home)
    for name in ("HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(link))

    keep_to_closed_home()

    assert os.environ["HOME"] == os.environ["XDG_CONFIG_HOME"] == str(home)


def test_who_has_no_home_has_that_of_all_folders() -> None:
    assert home_of(0) == os.path.expanduser("~root")
    assert home_of(NOBODYS_UID) == "/"
