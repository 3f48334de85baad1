"""What the proofs find when the rule about paths is not asked."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from parallelrun_core.storage.path_rule import PathRule, Places
from tests.security import test_master_paths as master_paths
from tests.security import test_paths as paths
from tests.security import test_special_files as special_files
from tests.twins.sabotage import expect_failure, nothing, replaced, without
from tests.unit.core import test_code_source as code_source
from tests.unit.core import test_job_documents as job_documents

MAKE_RULE = PathRule.__init__
OF_TEXTS = {name for name in paths.BY_NAME if name.startswith(("spellings of", "a datastore whose"))}
"""Attacks that are refused for how a URL is written, wherever it leads."""
OF_STORES = {name for name in paths.BY_NAME if name.startswith("patterns and objects of a store")}
"""Attacks by keys, which the listing of a store keeps below their prefix: the rule about paths has no part in it."""


@pytest.mark.integration
@pytest.mark.parametrize(
    "name", sorted({*paths.BY_NAME} - {paths.HARD_LINK, paths.SYMBOLIC_LINK} - OF_TEXTS - OF_STORES)
)
def test_without_the_rule_files_that_are_not_the_jobs_are_reached(name: str) -> None:
    with expect_failure():
        paths.check_attack(name, "paths.rule")


@pytest.mark.integration
@pytest.mark.parametrize("name", sorted(OF_TEXTS))
def test_urls_that_are_compared_as_they_are_written_are_found(name: str) -> None:
    with pytest.raises(AssertionError, match="private files were read"):
        paths.check_attack(name, "urls.canonical")


@pytest.mark.integration
def test_a_hard_link_that_is_served_is_found() -> None:
    with expect_failure():
        paths.check_attack(paths.HARD_LINK, "paths.own_files")


@pytest.mark.parametrize(
    "proof",
    [
        partial(paths.test_a_link_that_appears_after_the_check_is_not_followed, below=[]),
        paths.test_what_is_opened_is_checked_when_it_is_open,
        paths.test_an_output_is_not_written_through_a_link_that_has_appeared,
    ],
)
def test_a_rule_that_is_asked_only_at_submission_is_found(proof: Callable[[Path], None], tmp_path: Path) -> None:
    places = paths.places_in(tmp_path)
    with without("paths.rule"), expect_failure():
        proof(places)


def test_a_rule_that_takes_all_jobs_for_one_user_is_found(tmp_path: Path) -> None:
    def of_one_user(rule: PathRule, root: Path, places: Places, job: str = "", **more: Any) -> None:
        MAKE_RULE(rule, root, replace(places, are_jobs_apart=False), job, **more)

    places = paths.places_in(tmp_path)
    with replaced("parallelrun_core.storage.path_rule:PathRule.__init__", of_one_user), expect_failure():
        paths.test_where_jobs_are_users_of_their_own_only_a_job_itself_reads_its_outputs(places)


@pytest.mark.parametrize("kind", master_paths.KINDS)
def test_a_reader_of_a_master_that_opens_anything_is_found(kind: str, tmp_path: Path) -> None:
    with without("paths.bounds"), expect_failure():
        master_paths.check_readers(kind, tmp_path)


def test_a_zip_beside_the_code_of_any_number_of_files_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work = code_source.work_in(tmp_path)
    with replaced("parallelrun_core.code.source:_check_number", nothing), expect_failure():
        code_source.check_zipped_files(work, monkeypatch)


def test_keys_that_are_no_texts_are_found() -> None:
    with replaced("parallelrun_core.untrusted.bounded_yaml:_as_text", lambda key: key), expect_failure():
        job_documents.test_keys_are_texts_also_those_that_look_like_something_else()


@pytest.mark.integration
@pytest.mark.parametrize(
    "name, mechanism",
    [
        (special_files.TABLES, "paths.ordinary"),
        (special_files.AMONG, "paths.ordinary"),
        (special_files.LINKS, "paths.of_the_kernel"),
    ],
)
def test_what_keeps_a_service_busy_or_leads_each_process_elsewhere_is_found(name: str, mechanism: str) -> None:
    with expect_failure():
        special_files.check_attack(name, mechanism)
