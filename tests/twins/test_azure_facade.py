"""What the proofs find when the facade for Azure ML's client admits what it should not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.security import test_azure_facade as facade
from tests.security.azure_target import azure_target
from tests.twins.sabotage import expect_failure, nothing, replaced
from tests.unit.azure_facade.test_places import check_unknown_output

pytestmark = pytest.mark.integration


def test_a_face_that_believes_every_token_is_found(redis_url: str, tmp_path: Path) -> None:
    with azure_target(tmp_path, redis_url, without="azure.tokens") as target, expect_failure():
        facade.check_tokens(target)


def test_a_face_that_believes_every_signature_is_found(redis_url: str, tmp_path: Path) -> None:
    with azure_target(tmp_path, redis_url, without="azure.signatures") as target, expect_failure():
        facade.check_signatures(target)


def test_a_face_that_takes_every_name_for_a_path_is_found(redis_url: str, tmp_path: Path) -> None:
    with azure_target(tmp_path / "root", redis_url, without="azure.names") as target, expect_failure():
        facade.check_names(target)


def test_a_face_that_takes_every_folder_for_code_is_found(redis_url: str, tmp_path: Path) -> None:
    with azure_target(tmp_path / "root", redis_url, without="azure.codes") as target, expect_failure():
        facade.check_codes(target, tmp_path / "link")


def test_a_face_that_lists_nothing_of_an_unknown_output_is_found(tmp_path: Path) -> None:
    with replaced("parallelrun_api.azure.blobs.places:_check_output", nothing), expect_failure():
        check_unknown_output(tmp_path)
