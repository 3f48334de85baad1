"""What the proofs about templates of workers find when a rule is broken."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from parallelrun_agent.jobs.slot_sharing import SlotSharing
from parallelrun_agent.workers import templates as node_templates
from parallelrun_agent.workers.plans import PlanMaker
from parallelrun_agent.workers.template_process import TemplateKey
from parallelrun_agent.workers.templates import WorkerTemplates
from tests.integration.worker import test_begun_templates as begun
from tests.integration.worker import test_templates as forked
from tests.integration.worker.conftest import start
from tests.integration.worker.test_templates import node
from tests.integration.worker.worker_harness import WorkerHarness
from tests.twins.sabotage import always, expect_failure, nothing, replaced
from tests.unit.agent import test_fair_share as fair_share
from tests.unit.agent import test_plans as plans
from tests.unit.worker import test_templates as templates

__all__ = ["node", "start"]

Start = Callable[..., WorkerHarness]


@pytest.fixture
def reaped() -> Iterator[None]:
    """What the sabotage has left behind is waited for."""
    yield
    for child in psutil.Process().children():
        if child.status() == psutil.STATUS_ZOMBIE:
            os.waitpid(child.pid, 0)


def test_a_template_that_imports_whatever_comes_first_is_found() -> None:
    with replaced("parallelrun_worker.templates.leading_imports:may_share", always(True)), expect_failure():
        templates.test_only_what_comes_first_and_may_be_shared_is_imported("import os\nimport torch", ["os"])


def test_modules_of_the_user_in_a_template_are_found(tmp_path: Path) -> None:
    with replaced("parallelrun_worker.templates.leading_imports:UserModuleGuard.find_spec", nothing), expect_failure():
        templates.test_a_module_of_the_user_is_refused_and_others_are_left_to_other_finders(tmp_path)


@pytest.mark.integration
def test_a_begun_template_that_is_for_any_script_is_found(node: WorkerTemplates, tmp_path: Path) -> None:
    def whichever(*_: object, **__: object) -> TemplateKey | None:
        return next(iter(node._running), None)

    with replaced("parallelrun_agent.workers.template_process:TemplateKey.before_script", whichever), expect_failure():
        begun.test_a_begun_template_is_for_one_script_and_one_that_needs_its_imports(node, tmp_path)


def test_a_template_that_two_people_share_is_found(tmp_path: Path) -> None:
    of_owner = PlanMaker._template

    def of_anybody(*arguments: Any) -> TemplateKey:
        key = of_owner(*arguments)
        assert key is not None
        return replace(key, owner="")

    with replaced("parallelrun_agent.workers.plans:PlanMaker._template", of_anybody), expect_failure():
        plans.test_only_jobs_of_one_owner_with_equal_workers_share_a_template(tmp_path)


def test_secrets_in_a_template_that_outlives_its_job_are_found(tmp_path: Path) -> None:
    of_job = PlanMaker._template

    def of_all_jobs(*arguments: Any) -> TemplateKey:
        key = of_job(*arguments)
        assert key is not None
        return replace(key, job_id="")

    with replaced("parallelrun_agent.workers.plans:PlanMaker._template", of_all_jobs), expect_failure():
        plans.test_a_template_with_variables_of_a_job_is_that_jobs_own(tmp_path)


@pytest.mark.integration
@pytest.mark.usefixtures("reaped")
def test_a_template_that_is_kept_though_it_hangs_is_found(
    node: WorkerTemplates, start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        replaced("parallelrun_agent.workers.templates:WorkerTemplates._give_up", nothing),
        expect_failure(),
    ):
        forked.test_a_template_that_is_killed_or_hangs_costs_nothing(node, start, tmp_path, monkeypatch, signal.SIGSTOP)


@pytest.mark.integration
@pytest.mark.usefixtures("reaped")
def test_templates_that_hold_up_an_agent_one_after_another_are_found(
    node: WorkerTemplates, start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node_templates, "_PAUSE_S", 0.0)
    with expect_failure():
        forked.test_one_template_after_another_that_hangs_holds_up_no_agent(node, start, tmp_path, monkeypatch)


def test_slots_that_are_lost_while_a_template_begins_are_found() -> None:
    def taken(_: SlotSharing, job: Any) -> int:
        return len(job.workers)

    with replaced("parallelrun_agent.jobs.slot_sharing:SlotSharing._taken", taken), expect_failure():
        fair_share.test_slots_are_kept_for_workers_that_wait_for_a_template({})


@pytest.mark.integration
@pytest.mark.usefixtures("reaped")
def test_a_template_that_is_given_up_for_new_packages_is_found(
    node: WorkerTemplates, start: Start, tmp_path: Path
) -> None:
    with (
        replaced("parallelrun_agent.workers.template_process:TemplateProcess._last_word", always(b"")),
        expect_failure(),
    ):
        forked.test_a_package_that_is_installed_later_ends_a_template(node, start, tmp_path)


@pytest.mark.integration
@pytest.mark.usefixtures("reaped")
def test_a_template_that_takes_the_last_memory_is_found(
    node: WorkerTemplates, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node_templates, "_LEAST_MEMORY", 0)
    with expect_failure():
        forked.test_no_template_takes_memory_that_workers_need(node, tmp_path, monkeypatch)


@pytest.mark.integration
@pytest.mark.usefixtures("reaped")
def test_what_is_left_behind_by_templates_is_found(node: WorkerTemplates, tmp_path: Path) -> None:
    def poll(*_: Any) -> bool:
        return False

    with replaced("parallelrun_agent.workers.templates:WorkerTemplates.end_unused", poll), expect_failure():
        forked.test_a_template_that_says_more_than_it_may_is_ended(node, tmp_path)


@pytest.mark.integration
@pytest.mark.usefixtures("reaped")
def test_belief_in_whatever_process_a_template_names_is_found(start: Start, tmp_path: Path) -> None:
    with (
        replaced("parallelrun_agent.workers.orphans:Orphans.is_worker", always(False)),
        expect_failure(),
    ):
        forked.test_a_process_that_is_something_else_already_is_no_worker(start, tmp_path)
