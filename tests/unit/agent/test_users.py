"""Which user the workers of a job are, and where an agent gives way to others."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace

import pytest
from pydantic import ValidationError

from parallelrun_agent.environments.cache import check_cache
from parallelrun_agent.environments.job_python import JobPython
from parallelrun_agent.loop import EventLoop
from parallelrun_agent.settings import AgentSettings
from parallelrun_agent.staging.place import StagePlace
from parallelrun_agent.users.choice import Uids
from parallelrun_agent.users.places import make_output
from parallelrun_agent.users.worker_user import SAME_USER, WorkerUser
from parallelrun_agent.workers import plans
from parallelrun_agent.workers.gpus import GpuPool
from parallelrun_agent.workers.orphans import Orphans
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.folder.records import JobRecord
from parallelrun_core.ids import new_job_id
from parallelrun_core.service.process_secrets import ProcessSecrets
from parallelrun_core.spec import Environment, JobSpec

needs_root = pytest.mark.skipif(os.getuid() != 0, reason="only root can act as another user")
JOB = WorkerUser(23_456)
OTHER = WorkerUser(34_567)


def test_a_job_has_the_same_user_on_every_node_and_most_jobs_another_one() -> None:
    uids = Uids.parse("20000-59999")
    jobs = [new_job_id() for _ in range(200)]
    users = [uids.of_job(job) for job in jobs]
    assert users == [Uids.parse(" 20000 - 59999 ").of_job(job) for job in jobs]
    assert all(user in uids for user in users)
    assert len(set(users)) > 190


def test_no_job_is_a_user_that_installs_packages() -> None:
    for text in ("20000-59999", "7-10"):
        uids = Uids.parse(text)
        jobs = {uids.of_job(new_job_id()) for _ in range(2000)}
        builders = {uids.builder_of(f"owner{number}") for number in range(2000)}
        assert all(uid in uids for uid in jobs | builders)
        assert max(jobs) < uids.locked_builder < min(builders)
        assert uids.builder_of("anna") == Uids.parse(text).builder_of("anna")


def test_most_jobs_have_the_user_that_earlier_releases_gave_them() -> None:
    uids = Uids.parse("20000-59999")
    jobs = [new_job_id() for _ in range(200)]
    before = [20000 + int.from_bytes(sha256(job.encode()).digest()[:8], "big") % 40000 for job in jobs]
    assert sum(map(int.__eq__, before, map(uids.of_job, jobs))) > 140


@pytest.mark.parametrize("text", ["0-100", "root", "20000", "5-4", "-1-5", "1-4294967295", "1-2,4-5", "7-9"])
def test_what_is_no_range_of_users_is_refused_at_start(text: str) -> None:
    with pytest.raises(ValidationError, match="not a range of user ids"):
        AgentSettings(worker_uids=text)


@pytest.mark.parametrize("text", ["0:0", "parallelrun", "10001", "10001:0"])
def test_an_agent_that_is_to_become_root_or_nobody_is_refused_at_start(text: str) -> None:
    with pytest.raises(ValidationError, match="no user id and group id"):
        AgentSettings(run_as=text)


def test_without_a_range_workers_are_the_agents_user_and_packages_may_be_built() -> None:
    settings = AgentSettings()
    assert settings.worker_user("job_x") == SAME_USER
    assert settings.may_build_packages
    apart = AgentSettings(worker_uids="20000-59999")
    assert apart.worker_user("job_x").is_other
    assert not apart.may_build_packages
    assert AgentSettings(worker_uids="20000-59999", allow_source_packages=True).may_build_packages


def test_a_cache_that_is_the_agents_alone_is_taken(tmp_path: Path) -> None:
    (tmp_path / "cache").mkdir(mode=0o711)
    check_cache(tmp_path / "cache")
    check_cache(tmp_path / "not" / "there" / "yet")


@pytest.mark.parametrize("mode", [0o777, 0o1777, 0o722])
def test_a_cache_that_others_can_write_to_is_refused(mode: int, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    cache.mkdir()
    cache.chmod(mode)
    with pytest.raises(PermissionError, match="others can write"):
        check_cache(cache)


def test_a_cache_that_others_could_replace_is_refused(tmp_path: Path) -> None:
    above = tmp_path / "above"
    (above / "cache").mkdir(parents=True, mode=0o700)
    above.chmod(0o777)
    with pytest.raises(PermissionError, match=str(above)):
        check_cache(above / "cache")
    above.chmod(0o1777)  # as /tmp: nobody can replace what is another's
    check_cache(above / "cache")


@needs_root
def test_nothing_is_staged_where_a_job_could_replace_it(tmp_path: Path) -> None:
    tmp_path.chmod(0o1777)
    (tmp_path / "cache-1").mkdir()
    os.chown(tmp_path / "cache-1", JOB.uid, JOB.uid)  # which a job has made before its agent
    place = StagePlace(tmp_path / "cache-1" / "parallelrun", 0, are_jobs_apart=True)
    for stage in (lambda: place.cache, lambda: place.make_tree("job_x", JOB)):
        with pytest.raises(PermissionError, match=f"cache-1 belongs to user {JOB.uid}"):
            stage()


@needs_root
def test_a_cache_of_somebody_else_is_refused(tmp_path: Path) -> None:
    os.chown(tmp_path, JOB.uid, JOB.uid)
    with pytest.raises(PermissionError, match=f"belongs to user {JOB.uid}"):
        check_cache(tmp_path)


# As root only


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that any user can get to, unlike those of pytest."""
    folder = Path(tempfile.mkdtemp(dir="/tmp"))
    folder.chmod(0o711)
    yield folder
    SAME_USER.remove(folder)


@needs_root
def test_acting_as_a_user_an_agent_can_do_no_more_than_that_user(place: Path) -> None:
    closed = place / "closed"
    closed.mkdir(mode=0o700)
    with JOB.acting(), pytest.raises(PermissionError):
        (closed / "x").touch()
    (closed / "x").touch()
    with JOB.acting(), OTHER.acting(), pytest.raises(PermissionError):
        (closed / "y").touch()


@needs_root
def test_what_workers_share_remains_the_agents_and_is_closed_to_other_jobs(place: Path) -> None:
    shared = place / "shared"
    shared.mkdir()
    JOB.share(shared, 0o770)
    JOB.make(shared / "its-own", 0o700)
    assert (shared.stat().st_uid, shared.stat().st_gid) == (0, JOB.uid)
    assert (shared / "its-own").stat().st_uid == JOB.uid
    with OTHER.acting(), pytest.raises(PermissionError):
        list(shared.iterdir())
    JOB.remove(place)
    assert not place.exists()


@needs_root
def test_what_a_script_has_closed_even_to_itself_is_removed(place: Path) -> None:
    JOB.share(place, 0o770)
    with JOB.acting():
        (place / "a" / "b").mkdir(parents=True)
        (place / "a" / "b" / "file").touch()
        (place / "a" / "b").chmod(0)
        (place / "a").chmod(0)
    JOB.remove(place)
    assert not place.exists()


@needs_root
def test_a_link_is_never_shared_in_place_of_what_it_leads_to(place: Path) -> None:
    (place / "of-the-services").mkdir(mode=0o700)
    (place / "link").symlink_to(place / "of-the-services")
    with pytest.raises(OSError, match="link"):
        JOB.share(place / "link", 0o777)
    assert stat.S_IMODE((place / "of-the-services").stat().st_mode) == 0o700
    assert (place / "of-the-services").stat().st_gid == 0


@needs_root
def test_the_folder_of_an_output_is_its_jobs_until_a_second_job_names_it(place: Path) -> None:
    output = place / "deeper" / "output"
    make_output(output, JOB)
    assert JOB.can(output, os.W_OK)
    assert not OTHER.can(output, os.W_OK)
    with JOB.acting():
        (output / "mine").touch()
    make_output(output, OTHER)
    assert JOB.can(output, os.W_OK)
    assert OTHER.can(output, os.W_OK)
    with OTHER.acting(), pytest.raises(PermissionError):  # each has its own files
        (output / "mine").unlink()


@needs_root
def test_a_folder_above_an_output_may_be_an_output_too_but_an_operators_stays_closed(place: Path) -> None:
    operators, user = place / "operators", WorkerUser(60_000)
    operators.mkdir(mode=0o755)

    for each in (operators / "job" / "folder", operators / "job", operators):
        make_output(each, user)

    assert [user.can(each, os.W_OK) for each in (operators / "job" / "folder", operators / "job")] == [True, True]
    assert not user.can(operators, os.W_OK)


@needs_root
def test_no_link_of_a_job_leads_the_agent_when_it_makes_an_output(place: Path) -> None:
    (place / "of-the-services").mkdir(mode=0o700)
    make_output(place / "output", JOB)
    with JOB.acting():
        (place / "output" / "link").symlink_to(place / "of-the-services")
    with pytest.raises(OSError, match="link"):
        make_output(place / "output" / "link" / "planted", OTHER)
    assert list((place / "of-the-services").iterdir()) == []


@needs_root
def test_environments_that_the_jobs_user_can_not_reach_are_told_before_one_is_built(place: Path) -> None:
    home = place / "home"
    home.mkdir(mode=0o700)
    environment, loop = Environment(pip=("x",)), EventLoop()
    with closing(
        JobPython(
            environment, owner="anna", cache=home / "cache", max_environments=1, log_file=place / "log", loop=loop,
            orphans=Orphans(), changed=lambda: None, user=JOB,
        )
    ) as python:  # fmt: skip
        python.begin()
        assert python.failure is not None
        assert python.failure.category == "ENVIRONMENT_FAILED"
        assert f"closed to the job's user {JOB.uid}" in python.failure.message
        assert f"chmod o+x {home}, or use another folder with --cache-dir" in python.failure.message
        assert not python.is_ready


@needs_root
def test_an_existing_output_that_is_closed_to_workers_is_named_in_the_log(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logged: list[dict[str, object]] = []
    monkeypatch.setattr(plans, "log", SimpleNamespace(warning=lambda event, **fields: logged.append({event: fields})))
    for name in ("root", "work", "closed"):
        (place / name).mkdir()
    outputs = {"a": {"path": str(place / "closed")}, "b": {"path": str(place / "new")}}
    spec = JobSpec.parse({"entry_script": "a.py", "inputs": "/in", "output_action": "summary_only", "outputs": outputs})
    record = JobRecord(job_id="job_x", submitted=1.0, code="c" * 64, spec=spec.model_dump(mode="json"))
    settings = AgentSettings(root=place / "root", work_dir=place / "work", node="node", worker_uids="20000-59999")
    user = settings.worker_user("job_x")
    folder = JobFolder(place / "root", "job_x")
    folder.create(record)
    folder.layout.make_folders()
    plans.PlanMaker(folder, record, spec, settings, GpuPool([]), secrets=ProcessSecrets("")).next_plan("session")
    closed = {"job_id": "job_x", "folder": str(place / "closed"), "user": user.uid}
    assert {"output_closed_to_workers": closed} in logged
    assert str(place / "new") not in str(logged)
