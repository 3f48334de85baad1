"""What the proofs find when the API leaves to Redis what must not be forgotten."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from parallelrun_api.submission.key_claims import KeyClaim, KeyClaims
from tests.security import test_forgotten_by_redis as forgotten
from tests.twins.sabotage import expect_failure
from tests.unit.api import test_key_claims as claims


@pytest.mark.integration
def test_a_key_that_is_not_on_the_volume_is_found() -> None:
    with expect_failure():
        forgotten.check_a_wiped_redis(without="key.in_folder")


@pytest.mark.integration
def test_a_cancel_that_is_not_in_the_jobs_folder_is_found() -> None:
    with expect_failure():
        forgotten.check_a_forgotten_cancel(forgotten.wiped, without="cancel.in_folder")


def test_a_key_whose_first_name_decides_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def first(self: KeyClaims, digest: str, today: date) -> KeyClaim | None:
        return self._claims(today).find(digest)

    with monkeypatch.context() as patched:
        patched.setattr(KeyClaims, "_decided", first)
        with expect_failure(), pytest.MonkeyPatch.context() as inner:
            claims.check_a_meeting(claims.MIDNIGHT - 1, claims.MIDNIGHT + 1, tmp_path, inner)
