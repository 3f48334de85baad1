"""What the proofs find when documents of datastores are believed, and when nobody asks where they lead."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import patch

import pytest

from parallelrun_core.datastores import document
from parallelrun_core.storage.objects import allowed
from tests.security import test_stores as stores
from tests.twins.sabotage import always, expect_failure, nothing, without
from tests.unit.core import test_connecting as connecting
from tests.unit.datastores import test_documents as documents
from tests.unit.storage import test_allowed as places


@pytest.mark.parametrize("given", [{"credentials": {"secret": documents.CANARY}}, {"account_key": documents.CANARY}])
def test_documents_with_secrets_that_nobody_refuses_are_found(given: dict[str, object]) -> None:
    with patch.object(document, "_check_credentials", nothing), expect_failure():
        documents.test_a_document_with_a_secret_is_refused_without_repeating_it(documents.BLOB | given)


def test_datastores_that_may_lead_anywhere_are_found(tmp_path: Path) -> None:
    with patch.object(allowed, "is_below", always(True)), expect_failure():
        places.test_a_datastore_is_allowed_if_what_it_stands_for_is(tmp_path)


@pytest.mark.integration
@pytest.mark.parametrize("name", [name for name in stores.BY_NAME if "whose server redirects" in name])
def test_redirects_that_are_followed_anywhere_are_found(name: str) -> None:
    with expect_failure():
        stores.check_attack(name, "web.redirects")


@pytest.mark.integration
def test_a_store_that_leads_elsewhere_is_found() -> None:
    with pytest.raises(AssertionError, match="has led somebody to localhost"):
        stores.check_attack(stores.LED_AWAY, "stores.redirects")


@pytest.mark.integration
def test_names_that_may_lead_anywhere_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    with without("web.addresses"), expect_failure():
        connecting.test_a_name_that_leads_to_this_machine_is_not_asked(monkeypatch)


@pytest.mark.integration
@pytest.mark.parametrize(
    "name", [name for name in stores.BY_NAME if "another's secret" in name or "its secret" in name]
)
def test_secrets_that_are_sent_wherever_a_datastore_says_are_found(name: str) -> None:
    with expect_failure():
        stores.check_attack(name, "datastores.bound")


@pytest.mark.integration
@pytest.mark.parametrize(
    "name, mechanism, evidence",
    [
        (
            "settings of a job that have a datastore's secret sent elsewhere", "agent.own_variables",
            "the secret of the store .* was used for",
        ),
        (
            "the secret of a datastore in what is told of a job that fails by it", "stores.words",
            "has the secret",
        ),
        ("addresses of a cloud's metadata as inputs and endpoints", "urls.machines", "was accepted"),
    ],
)  # fmt: skip
def test_what_else_is_told_or_sent_elsewhere_is_found(name: str, mechanism: str, evidence: str) -> None:
    with pytest.raises(AssertionError, match=evidence):
        stores.check_attack(name, mechanism)


@pytest.mark.integration
def test_a_folder_of_secrets_that_jobs_may_name_is_found() -> None:
    with expect_failure():
        stores.check_attack("the folder of the stores' secrets as an input", "paths.rule")
