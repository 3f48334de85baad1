"""What the race finds when what was opened is not looked at where it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.security import test_races as races
from tests.twins.sabotage import expect_failure, without


@pytest.mark.parametrize("part", ["code", "file", "subfolder"])
def test_code_that_is_checked_by_its_name_alone_is_found(part: str, tmp_path: Path) -> None:
    places = races.places_in(tmp_path)
    with without("paths.beneath"), expect_failure():
        races.test_code_that_becomes_a_link_while_it_is_copied(places, part)


def test_an_input_that_is_checked_by_its_name_alone_is_found(tmp_path: Path) -> None:
    places = races.places_in(tmp_path)
    with without("paths.beneath"), expect_failure():
        races.test_an_input_that_becomes_a_link_while_it_is_opened(places, "entry.py")
