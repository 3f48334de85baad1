"""What the proofs find when a requirement is written as it came."""

from __future__ import annotations

import pytest

from tests.security import test_requirements as requirements
from tests.twins.sabotage import expect_failure


@pytest.mark.integration
@pytest.mark.parametrize("name", requirements.BY_NAME)
def test_a_requirement_that_is_only_looked_at_is_found(name: str) -> None:
    with expect_failure():
        requirements.check_attack(name, "requirements.written")
