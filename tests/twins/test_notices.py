"""Notices without what makes them certain and harmless: the proofs must fail."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration import test_notices as ends
from tests.security import test_notices as attacks
from tests.twins import sabotage
from tests.twins.sabotage import expect_failure
from tests.unit.master import test_notices as notices


@pytest.mark.integration
def test_an_end_that_masters_forget_is_found(tmp_path: Path) -> None:
    with expect_failure():
        ends.tell_although_all_die(tmp_path, within_s=5, without="notices.owed")


@pytest.mark.integration
@pytest.mark.parametrize("name", attacks.BY_NAME)
def test_a_receiver_inside_that_is_told_is_found(name: str) -> None:
    with pytest.raises(AssertionError, match="delivered, answered with 204"):
        attacks.check_attack(name, "notices.addresses")


def test_a_notice_to_an_address_of_the_machine_itself_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    with sabotage.without("notices.addresses"), expect_failure():
        notices.test_a_name_that_leads_to_metadata_is_refused_whatever_is_allowed(monkeypatch)
