"""What the proofs find when nobody looks at what a file says of itself."""

from __future__ import annotations

import pytest

from tests.security import test_hostile_tables as hostile
from tests.security.attacks.tables import FOOTER, SCHEMA
from tests.twins.sabotage import expect_failure


@pytest.mark.integration
@pytest.mark.parametrize("name, mechanism", [(FOOTER, "tables.footers"), (SCHEMA, "tables.schemas")])
def test_a_file_that_ends_the_leader_is_found(name: str, mechanism: str) -> None:
    with expect_failure():
        hostile.check_attack(name, mechanism)
