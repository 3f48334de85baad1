"""What the proofs find when requests are admitted that should not be."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING
from unittest.mock import patch

import pytest

from parallelrun.resources import assets
from tests.integration.api import test_deleted_jobs as deleted
from tests.integration.api import test_people as people
from tests.integration.api import test_previews as previews
from tests.integration.api import test_web_page as web_page
from tests.integration.api.conftest import Site
from tests.security import test_access as access
from tests.security import test_people as with_others
from tests.twins.sabotage import always, expect_failure, replaced, without
from tests.unit.api import test_lanes as lanes
from tests.unit.api import test_sessions as sessions

if TYPE_CHECKING:
    from redis import Redis


@pytest.mark.integration
def test_a_name_of_somebody_else_that_is_answered_is_found() -> None:
    with expect_failure():
        access.check_attack("a name of somebody else for this server", "api.host")


@pytest.mark.integration
@pytest.mark.parametrize(
    "name, mechanism",
    [
        ("a cookie of somebody who has signed out", "api.signed_out"),
        ("a link to sign in that somebody has used", "api.links_once"),
        ("what there was of a job that is deleted", "api.deleted"),
        ("a datastore of the cluster, by the door for another client", "azure.ownership"),
        ("what all jobs depend on, by who may only submit", "api.ownership"),
    ],
)
def test_what_outlives_its_end_is_found(name: str, mechanism: str) -> None:
    with expect_failure():
        access.check_attack(name, mechanism)


@pytest.mark.integration
@pytest.mark.parametrize(
    "name, mechanism",
    [
        ("an upload of somebody else, by the door for another client", "azure.uploads"),
        ("somebody else's job, by both doors", "api.other_jobs"),
        ("jobs at the same moment, more than a quota has", "quota.reserved"),
        ("a token that a job puts into the folder that all share", "api.sealed_tokens"),
        ("joined logs with links to what is another job's", "paths.own_files"),
        ("somebody else's outputs, by every field with a path", "paths.only_owner"),
        ("the outputs of a deleted job, by every field with a path", "api.deleted"),
        ("assets of somebody else's outputs", "paths.only_owner"),
        ("somebody else's endpoint, by both doors", "api.ownership"),
        ("somebody else's run and its artifacts", "api.other_jobs"),
        ("long names of jobs that begin alike", "key.whole"),
        ("code from the page that leads elsewhere", "zips.names"),
        ("what somebody else has sent from the page", "api.ownership"),
        ("what somebody else has sent from the page", "people.owners"),
        ("a component of somebody else and its code", "people.owners"),
        ("downloads of components that lead elsewhere", "azure.codes"),
    ],
)
def test_what_people_do_to_each_other_is_found(name: str, mechanism: str) -> None:
    with expect_failure():
        with_others.check_attack(name, mechanism)


@pytest.mark.integration
def test_a_name_of_code_that_somebody_has_taken_for_good_is_found() -> None:
    with patch.object(assets, "_TAKEN", ()), expect_failure():
        with_others.check_attack("the name of somebody's code, taken before they send it")


@pytest.mark.integration
def test_a_cookie_that_any_site_can_make_changes_with_is_found(redis_url: str, tmp_path: Path) -> None:
    with expect_failure():
        access.check_other_site(redis_url, tmp_path, without="api.page_header")


@pytest.mark.integration
def test_a_server_that_serves_files_of_deleted_jobs_is_found(redis_url: str, redis: Redis, tmp_path: Path) -> None:
    site = Site.made(tmp_path)
    with expect_failure():
        deleted.check_deleted(tmp_path / "root", redis_url, redis, site, without="api.deleted")


@pytest.mark.integration
def test_a_server_that_shows_whatever_lies_where_an_output_was_is_found(
    redis_url: str, redis: Redis, tmp_path: Path
) -> None:
    site = Site.made(tmp_path)
    with expect_failure():
        previews.check_output_table(redis_url, tmp_path / "root", site, without="api.output_only")


@pytest.mark.integration
def test_a_server_that_reads_its_tokens_once_is_found(redis_url: str, tmp_path: Path) -> None:
    with expect_failure():
        access.check_removal(redis_url, tmp_path, without="api.tokens_anew")


@pytest.mark.integration
def test_a_server_that_lets_streams_outlive_their_session_is_found(redis_url: str, tmp_path: Path) -> None:
    site = Site.made(tmp_path)
    with expect_failure():
        web_page.check_that_streams_end(redis_url, site, tmp_path, without="api.streams_end")


@pytest.mark.integration
def test_a_server_that_asks_for_no_token_is_found(
    redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PARALLELRUN_INSECURE", "true")
    with expect_failure():
        access.check_anonymous(redis_url, tmp_path)


@pytest.mark.integration
def test_a_server_where_everybody_is_an_operator_is_found(redis_url: str, tmp_path: Path) -> None:
    with expect_failure():
        access.check_operators(redis_url, tmp_path, without="api.operators")


@pytest.mark.integration
def test_a_server_where_everybody_changes_everything_is_found(redis_url: str, tmp_path: Path) -> None:
    site = Site.made(tmp_path)
    with expect_failure():
        people.check_no_route_changes_what_is_anothers(redis_url, tmp_path / "root", site, without="api.ownership")


@pytest.mark.integration
def test_a_server_that_compares_with_jobs_of_others_is_found(redis_url: str, tmp_path: Path) -> None:
    site = Site.made(tmp_path)
    own = people.served(redis_url, tmp_path / "root", "--visibility", "own", without="api.other_jobs")
    with own as server, ExitStack() as clients, expect_failure():
        people.check_what_is_anothers(people.People(server, clients), site)


@pytest.mark.integration
def test_a_server_whose_answers_tell_of_jobs_of_others_is_found(redis_url: str, redis: Redis, tmp_path: Path) -> None:
    site = Site.made(tmp_path)
    own = people.served(redis_url, tmp_path / "root", "--visibility", "own", without="api.other_jobs")
    with own as server, ExitStack() as clients, expect_failure():
        people.check_no_answer_tells_of_anothers_job(people.People(server, clients), site, redis)


def test_a_list_that_is_shared_with_who_must_not_see_it_is_found() -> None:
    with without("api.shared_answers"), expect_failure():
        lanes.test_people_who_see_only_their_own_share_answers_with_nobody()


@pytest.mark.integration
def test_another_door_where_everybody_changes_everything_is_found(redis_url: str, tmp_path: Path) -> None:
    site = Site.made(tmp_path)
    with expect_failure():
        people.check_no_route_of_azures_client_changes_what_is_anothers(
            redis_url, tmp_path / "root", site, without="azure.ownership"
        )


@pytest.mark.integration
def test_a_server_that_believes_any_token_in_its_root_is_found(redis_url: str, tmp_path: Path) -> None:
    with expect_failure():
        people.check_forged(redis_url, tmp_path / "root", without="api.sealed_tokens")


@pytest.mark.parametrize(
    "proof",
    [sessions.test_a_code_is_of_one_token_and_not_of_its_name, sessions.test_what_comes_of_a_session_ends_with_it],
)
def test_a_link_that_outlives_its_token_or_its_session_is_found(proof: Callable[[Path], None], tmp_path: Path) -> None:
    with replaced("parallelrun_api.http.sessions:Sessions._is_good", always(True)), expect_failure():
        proof(tmp_path)
