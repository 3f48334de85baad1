"""What the race finds when what was opened is not looked at where it is."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from pathlib import Path

import pytest

from parallelrun_agent.users.worker_user import WorkerUser
from tests.security import test_races as races
from tests.twins.sabotage import expect_failure, without


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
