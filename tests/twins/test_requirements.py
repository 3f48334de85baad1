"""What the proofs find when a requirement is written as it came."""

from __future__ import annotations

import pytest

from parallelrun_core.code import dockerfile_check
from tests.security import test_requirements as requirements
from tests.security.attacks import dockerfiles
from tests.security.attacks import requirements as attacks
from tests.twins.sabotage import always, expect_failure, replaced


@pytest.mark.integration
@pytest.mark.parametrize(
    "name, mechanism",
    [
        *((attack.name, "requirements.written") for attack in attacks.ATTACKS),
        *((attack.name, "dockerfiles.checked") for attack in dockerfiles.ATTACKS),
    ],
)
def test_what_is_only_looked_at_is_found(name: str, mechanism: str) -> None:
    with expect_failure():
        requirements.check_attack(name, mechanism)


def test_a_dockerfile_whose_images_are_not_looked_for_is_found() -> None:
    with replaced("parallelrun_core.code.dockerfile_check:_images", always(set())), expect_failure():
        requirements.test_a_dockerfile_of_what_only_the_engines_machine_has_is_refused(dockerfiles.OF_THE_MACHINE)


@pytest.mark.parametrize("text", dockerfiles.FETCHING)
def test_a_dockerfile_in_which_no_url_is_looked_for_is_found(text: str) -> None:
    with (
        expect_failure(),
        replaced(f"{dockerfile_check.__name__}:_may_be_url", always(False)),
    ):
        requirements.test_a_dockerfile_that_has_the_engine_fetch_something_is_refused(text)


@pytest.mark.parametrize("text", [text for text in dockerfiles.FETCHING if "<<" in text])
def test_a_dockerfile_whose_texts_are_taken_for_instructions_is_found(text: str) -> None:
    with replaced("parallelrun_core.code.dockerfile_check:_adding_line", always("")), expect_failure():
        requirements.test_a_dockerfile_that_has_the_engine_fetch_something_is_refused(text)
