"""What the proofs about computes find when a part of the mechanism is gone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from unittest.mock import patch

import pytest

from parallelrun_agent.jobs import joining
from parallelrun_core.documents.codecs import FieldsCodec
from parallelrun_core.store.provisioning import Provisioning, ProvisioningStatus
from parallelrun_master.leader import compute_watch
from parallelrun_provisioner.engines.docker.building import Builds
from parallelrun_provisioner.engines.docker.settings import DockerSettings
from parallelrun_provisioner.engines.interface import ImageState
from parallelrun_provisioner.policy import scaling
from tests.integration import test_left_alone as alone
from tests.integration.provisioner import test_pool as pools
from tests.security import test_computes as kinds
from tests.twins.sabotage import always, expect_failure
from tests.unit.agent import test_work_finder as finders
from tests.unit.computes import test_documents as documents
from tests.unit.master import test_compute_watch as watches
from tests.unit.provisioner import test_building as builds
from tests.unit.provisioner import test_scaling as histories

if TYPE_CHECKING:
    from redis import Redis


def test_a_node_that_works_for_any_compute_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with patch.object(joining, "_is_for", always(True)), expect_failure():
        finders.test_the_record_of_a_job_of_another_compute_is_read_once(monkeypatch, tmp_path)


def test_nodes_that_go_with_work_in_hand_are_found() -> None:
    def whoever_is_there(nodes: list[scaling.PoolNode], *_: object) -> list[scaling.PoolNode]:
        return [node for node in nodes if node.life is scaling.NodePhase.READY]

    with patch.object(scaling, "_idle", whoever_is_there), expect_failure():
        histories.test_only_nodes_that_were_idle_for_long_are_asked_to_leave_the_longest_first()


def test_a_wait_for_nodes_that_counts_as_a_stall_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    pending = ProvisioningStatus(at=0.0, wanted=1, launching=1)
    with patch.object(compute_watch, "is_served", always(False)), expect_failure():
        watches.test_waiting_for_nodes_is_no_stall_while_somebody_serves_the_compute(monkeypatch, pending, True)


def test_a_shape_that_holds_up_others_is_found() -> None:
    with patch.object(scaling, "_most_of_each", always({})), expect_failure():
        histories.test_a_shape_that_can_not_be_had_leaves_its_room_to_others()


@pytest.mark.integration
def test_a_build_that_keeps_the_room_of_others_is_found(redis: Redis) -> None:
    with patch.object(scaling, "_most_of_each", always({})), expect_failure():
        pools.test_a_build_holds_up_no_other_job_and_its_nodes_come_when_it_is_done(redis)


def test_a_job_that_waits_for_an_image_that_never_comes_is_found(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with patch.object(compute_watch, "why_never", always(None)), expect_failure():
        watches.test_a_job_fails_with_its_image_unless_that_was_before_it_came(
            monkeypatch, tmp_path, (101.0, 0.0), "no such base", 0, has_failed=True
        )


def test_a_build_that_no_operator_has_allowed_is_found() -> None:
    with patch.object(Builds, "_state", always(ImageState())), expect_failure():
        builds.test_nothing_is_built_unless_the_operator_says_so(DockerSettings(kit="kit"), "BUILDS")


@pytest.mark.integration
def test_one_that_acts_on_what_it_saw_long_ago_is_found(redis: Redis) -> None:
    with patch.object(Provisioning, "stays", always(True)), expect_failure():
        pools.test_one_that_was_held_up_while_another_one_acted_ends_nothing(redis)


@pytest.mark.integration
def test_a_launch_that_is_not_recorded_first_is_found(redis: Redis) -> None:
    with patch.object(Provisioning, "record", always(True)), expect_failure():
        pools.test_a_provisioner_that_dies_beside_a_launch_leaves_no_node_unknown(redis)


@pytest.mark.integration
def test_a_provisioner_that_acts_though_another_one_does_is_found(redis: Redis) -> None:
    with patch.object(Provisioning, "_as_leader", _whoever_it_is), expect_failure():
        pools.test_only_the_one_that_acts_asks_for_nodes(redis)


@pytest.mark.integration
def test_a_provisioner_that_starts_whatever_is_defined_is_found() -> None:
    with expect_failure():
        kinds.check_kinds(without="computes.kinds")


@pytest.mark.integration
def test_a_node_that_waits_for_ever_for_a_redis_that_is_gone_is_found() -> None:
    with expect_failure():
        alone.check_its_end(without="agent.alone")


def test_a_catalog_that_believes_every_file_is_found(tmp_path: Path) -> None:
    with patch.object(FieldsCodec, "_is_sealed", always(True)), expect_failure():
        documents.test_with_a_key_only_sealed_definitions_count(tmp_path)


def _whoever_it_is(self: Provisioning, change: object) -> bool:
    """Make a change whoever acts."""
    with self._redis.pipeline(transaction=True) as pipe:
        change(pipe)  # type: ignore[operator]
        pipe.execute()
    return True
