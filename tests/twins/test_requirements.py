"""What the proofs find when a requirement is written as it came."""

from __future__ import annotations

import pytest

from parallelrun_core.code import dockerfile_check
from tests.security import test_requirements as requirements
from tests.twins.sabotage import always, expect_failure, replaced


@pytest.mark.integration
@pytest.mark.parametrize("name", requirements.BY_NAME)
def test_a_requirement_that_is_only_looked_at_is_found(name: str) -> None:
    with expect_failure():
        requirements.check_attack(name, "requirements.written")


@pytest.mark.parametrize("text", requirements.BAD_DOCKERFILES)
def test_a_dockerfile_in_which_no_url_is_looked_for_is_found(text: str) -> None:
    with (
        expect_failure(),
        replaced(f"{dockerfile_check.__name__}:_may_be_url", always(False)),
    ):
        requirements.test_a_dockerfile_that_has_the_engine_fetch_something_is_refused(text)


@pytest.mark.parametrize("text", [text for text in requirements.BAD_DOCKERFILES if "<<" in text])
def test_a_dockerfile_whose_texts_are_taken_for_instructions_is_found(text: str) -> None:
    with replaced("parallelrun_core.code.dockerfile_check:_adding_line", always("")), expect_failure():
        requirements.test_a_dockerfile_that_has_the_engine_fetch_something_is_refused(text)
