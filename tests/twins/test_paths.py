"""What the proofs find when the rule about paths is not asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.security import test_paths as paths
from tests.security.test_paths import places  # noqa: F401 - a fixture
from tests.twins.sabotage import expect_failure, without


@pytest.mark.integration
@pytest.mark.parametrize("name", sorted({*paths.BY_NAME} - {paths.HARD_LINK, paths.SYMBOLIC_LINK}))
def test_without_the_rule_files_that_are_not_the_jobs_are_reached(name: str) -> None:
    with expect_failure():
        paths.check_attack(name, "paths.rule")


@pytest.mark.integration
def test_a_hard_link_that_is_served_is_found() -> None:
    with expect_failure():
        paths.check_attack(paths.HARD_LINK, "paths.own_files")


def test_a_rule_that_is_asked_only_at_submission_is_found(places: Path) -> None:
    with without("paths.rule"), expect_failure():
        paths.test_a_link_that_appears_after_the_check_is_not_followed(places, [])
    with without("paths.rule"), expect_failure():
        paths.test_what_is_opened_is_checked_when_it_is_open(places)
    with without("paths.rule"), expect_failure():
        paths.test_an_output_is_not_written_through_a_link_that_has_appeared(places)
