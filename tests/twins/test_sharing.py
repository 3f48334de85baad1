"""What the proofs find when slots are not shared."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import jwt
import pytest
from redis import Redis

from parallelrun_agent.jobs.node_job import NodeJob
from parallelrun_agent.jobs.slot_sharing import SlotSharing
from parallelrun_agent.policy.fair_share import Claim
from parallelrun_api.people.oidc import Oidc
from tests.integration import test_sharing as sharing
from tests.integration.api import test_oidc as oidc
from tests.integration.api import test_quotas as quotas
from tests.integration.api import test_steering as steering
from tests.integration.api.conftest import Site
from tests.oidc_server import OidcServer
from tests.twins import sabotage
from tests.twins.sabotage import expect_failure
from tests.unit.agent import test_fair_share as fair_share
from tests.unit.agent import test_slot_quota as slot_quota

LETTERS: Final = {"audience": "aud", "issuer": "iss", "exp": "exp"}
"""Names of claims, as the library has them in its options."""


@pytest.mark.integration
@pytest.mark.slow
def test_a_node_that_takes_no_worker_back_is_found() -> None:
    with expect_failure():
        sharing.check_a_small_job_behind_a_long_one("agent.take_back")


def test_histories_without_workers_that_are_taken_back_are_found() -> None:
    with sabotage.without("agent.take_back"), expect_failure():
        for seed in range(60):
            fair_share.check_histories(seed)


@pytest.mark.integration
@pytest.mark.slow
def test_a_pause_that_is_forgotten_is_found() -> None:
    with expect_failure():
        sharing.check_a_paused_job("job.orders")


@pytest.mark.integration
def test_a_server_where_anybody_ends_an_admins_pause_is_found(redis_url: str, tmp_path: Path) -> None:
    with expect_failure():
        steering.check_pauses(redis_url, tmp_path, Site.made(tmp_path), "job.pause_by_admin")


@pytest.mark.integration
def test_a_server_that_counts_no_jobs_of_an_owner_is_found(redis_url: str, redis: Redis, tmp_path: Path) -> None:
    with expect_failure():
        quotas.check_quotas(redis_url, redis, tmp_path, Site.made(tmp_path), "quota.of_jobs")


@pytest.mark.integration
def test_servers_that_only_look_before_they_accept_are_found(redis_url: str, redis: Redis, tmp_path: Path) -> None:
    with expect_failure():
        quotas.check_submissions_at_the_same_moment(redis_url, tmp_path, Site.made(tmp_path), "quota.reserved")


def test_a_node_that_forgets_quotas_is_found() -> None:
    def as_claimed(_: SlotSharing, jobs: list[NodeJob], claims: list[Claim]) -> list[Claim]:
        return claims

    def no_limit(sharing: SlotSharing, *_: object) -> int:
        return sharing.slots

    module = "parallelrun_agent.jobs.slot_sharing:SlotSharing"
    with (
        sabotage.replaced(f"{module}._within_quotas", as_claimed),
        sabotage.replaced(f"{module}._left_of_quota", no_limit),
        expect_failure(),
    ):
        slot_quota.test_an_owner_has_no_more_workers_than_their_quota_also_when_it_gets_smaller()


def test_nodes_that_leave_a_small_job_to_each_other_are_found() -> None:
    def to_others(_: SlotSharing, ready: Mapping[str, int], *__: object) -> dict[str, int]:
        return dict.fromkeys(ready, 0)

    with sabotage.replaced("parallelrun_agent.jobs.slot_sharing:SlotSharing._local", to_others), expect_failure():
        fair_share.TestOverTime().test_as_many_nodes_begin_with_a_small_job_as_can_and_more_while_none_has_a_slot(1)


@pytest.mark.parametrize(
    "sabotaged, claims",
    [("audience", {"aud": "another server"}), ("issuer", {"iss": "https://evil.example"}), ("exp", {"exp": 1.0})],
)
@pytest.mark.integration
def test_a_server_that_does_not_check_what_a_token_claims_is_found(sabotaged: str, claims: dict[str, object]) -> None:
    decode = jwt.decode

    def careless(presented: bytes, key: object, *, options: dict[str, object], **more: Any) -> Any:
        return decode(presented, key, options={**options, f"verify_{LETTERS[sabotaged]}": False}, **more)  # type: ignore[arg-type]

    with OidcServer() as provider, sabotage.replaced("jwt:decode", careless), expect_failure():
        oidc.test_a_token_that_is_not_for_this_server_and_now_is_refused(provider, claims, ".")


@pytest.mark.integration
def test_a_server_where_all_wait_for_the_provider_is_found() -> None:
    key_of = Oidc._key
    lock = threading.Lock()

    def careless(self: Oidc, key_id: str) -> Any:
        with lock:
            return key_of(self, key_id)

    waits = sabotage.replaced("parallelrun_api.people.oidc:Oidc._key", careless)
    with OidcServer() as provider, waits, expect_failure():
        oidc.check_slow_provider(provider)


@pytest.mark.integration
def test_a_server_that_checks_no_signature_is_found() -> None:
    decode = jwt.decode

    def careless(presented: bytes, key: object, *, options: dict[str, object], **more: Any) -> Any:
        return decode(presented, key, options={**options, "verify_signature": False, "verify_exp": True}, **more)  # type: ignore[arg-type]

    with OidcServer() as provider, sabotage.replaced("jwt:decode", careless), expect_failure():
        oidc.test_only_what_the_provider_has_signed_with_a_key_of_its_own_counts(provider)


def test_a_secret_that_is_taken_for_a_key_is_found() -> None:
    with sabotage.replaced("parallelrun_api.people.oidc:_signs", sabotage.always(True)), sabotage.expect_failure():
        oidc.check_published_secret()
