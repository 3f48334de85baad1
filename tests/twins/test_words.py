"""What the proofs find when words of users stay as they are, and when nothing is masked."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.security import test_secrets as secrets
from tests.security import test_words as words
from tests.twins.sabotage import expect_failure


@pytest.mark.integration
def test_words_that_stay_as_they_are_are_found() -> None:
    with expect_failure():
        words.check_words(without="words.visible")


@pytest.mark.integration
def test_secrets_that_nobody_masks_are_found(tmp_path: Path) -> None:
    with expect_failure():
        secrets.check_secrets(tmp_path, without="secrets.mask", places=("run",))
