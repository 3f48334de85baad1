"""What the proofs find when a service may do more on Redis than it needs."""

from __future__ import annotations

from pathlib import Path

import pytest

from parallelrun_core.store.roles import Role
from tests.redis_server import RedisServer
from tests.security import test_redis as security
from tests.twins.sabotage import expect_failure, without

pytestmark = pytest.mark.integration


@pytest.mark.parametrize("role", Role)
def test_services_that_may_do_anything_are_found(role: Role) -> None:
    with without("redis.roles"), RedisServer() as server, expect_failure():
        security.check_what_is_denied(server, role, security.NOBODY_MAY)


def test_agents_that_may_do_what_others_may_are_found() -> None:
    with without("redis.roles"), RedisServer() as server, expect_failure():
        security.check_what_is_denied(server, Role.AGENT, security.AN_AGENT_MAY_NOT)


def test_a_server_that_asks_nobody_for_a_password_is_found(tmp_path: Path) -> None:
    with without("redis.passwords"), expect_failure():
        security.test_who_has_no_name_or_a_wrong_password_gets_nothing(tmp_path)
