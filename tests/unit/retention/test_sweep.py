"""A sweep removes what rules and users want removed, keeps what something refers to, and may be killed at any step."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from parallelrun_core.assets.catalog import Catalog
from parallelrun_core.code import snapshots
from parallelrun_core.folder.records import Parent, Reopening
from parallelrun_core.layout import code_store, finished_steps, jobs_of, uploads_of
from parallelrun_core.pipelines.finished import FinishedStep, add_finished
from parallelrun_core.retention.marks import Marks
from parallelrun_core.retention.policy import JobFacts
from parallelrun_core.retention.report import last_report
from parallelrun_core.retention.rules import Rules
from parallelrun_core.retention.sizes import usage_of
from parallelrun_core.retention.sweep import Sweeper
from parallelrun_core.wire.states import JobState
from tests.unit.retention.roots import DAY_S, START, Root

POINTS = ("retention.noticed", "retention.marked", "retention.set_aside", "retention.judged", "retention.removed")


@pytest.fixture
def root(tmp_path: Path) -> Root:
    return Root(tmp_path)


def snapshot(root: Root, text: str, *, days_ago: float = 0.0) -> str:
    """Store a snapshot that was last submitted some days ago."""
    code = root.path / f"code-{text}"
    code.mkdir()
    (code / "entry.py").write_text(text)
    name = snapshots.snapshot_folder(code, code_store(root.path))
    at = root.now - days_ago * DAY_S
    os.utime(code_store(root.path) / f"{name}.files", (at, at))
    return name


def test_retention_by_default_removes_no_job(root: Root) -> None:
    jobs = [root.job(state=state) for state in (JobState.COMPLETED, JobState.FAILED, JobState.CANCELED)]
    root.pass_days(3650)
    report = root.sweep(Rules())
    assert root.there() == jobs
    for job_id in jobs:
        assert (root.folder(job_id).outputs / "rows.txt").exists()
        assert (root.folder(job_id).logs / "job_result.txt").exists()
        assert Marks(root.folder(job_id)).notice is None
    assert report.jobs == []


def test_retention_strips_completed_jobs_of_parts_and_live_logs_only(root: Root) -> None:
    completed, failed = root.job(), root.job(state=JobState.FAILED)
    root.pass_days(29)
    root.sweep(Rules())
    assert (root.folder(completed).parts / "session.0").exists()
    root.pass_days(2)
    report = root.sweep(Rules())
    assert {kind: each.count for kind, each in report.removed.items()} == {"parts": 1, "logs": 1}
    assert list(root.folder(completed).parts.iterdir()) == []
    assert not list((root.folder(completed).logs / "user" / "stdout").rglob("*.txt"))
    assert (root.folder(completed).outputs / "rows.txt").exists()
    assert (root.folder(completed).logs / "job_result.txt").exists()
    assert Marks(root.folder(completed)).lacks_parts()
    assert (root.folder(failed).parts / "session.0").exists()
    assert root.sweep(Rules()).removed == {}


def test_retention_notes_on_a_job_a_week_before_that_a_rule_removes_it(root: Root) -> None:
    rules = Rules(keep_jobs_days=30)
    job = root.job()
    root.pass_days(22)
    root.sweep(rules)
    assert Marks(root.folder(job)).notice is None
    root.pass_days(1.1)
    root.sweep(rules)
    notice = Marks(root.folder(job)).notice
    assert notice is not None
    assert notice.removed_at == pytest.approx(START + 30.1 * DAY_S)
    root.pass_days(6.9)
    root.sweep(rules)
    assert root.there() == [job]
    root.pass_days(0.2)
    assert root.sweep(rules).jobs == [job]
    assert root.there() == []
    assert list(jobs_of(root.path).iterdir()) == []


def test_retention_takes_a_notice_back_when_the_rule_is_gone(root: Root) -> None:
    job = root.job()
    root.pass_days(40)
    root.sweep(Rules(keep_jobs_days=30))
    assert Marks(root.folder(job)).notice is not None
    root.sweep(Rules())
    assert Marks(root.folder(job)).notice is None


@pytest.mark.parametrize(
    "rules", [Rules(keep_jobs=5, keep_notice_days=0), Rules(keep_jobs_bytes=12_000, keep_notice_days=0)]
)
def test_retention_by_number_and_bytes_removes_the_oldest(root: Root, rules: Rules) -> None:
    for _ in range(10):
        root.job()
        root.pass_days(1)
    root.sweep(rules)
    root.sweep(rules)
    there = root.there()
    assert 2 <= len(there) <= 5
    assert there == root.jobs[-len(there) :]


def test_retention_keeps_what_something_refers_to(root: Root) -> None:
    """Each of these is old enough, and each is needed: by a job that resumes from it, by one that reads its outputs, by
    a pipeline that has reused it, by an asset, by a schedule; and one runs."""
    resumed, read, reused, registered, scheduled, free = (root.job(code=f"{number:064x}") for number in range(6))
    running = root.job(state=None)
    root.pass_days(60)
    root.job(state=None, resume_from=resumed)
    root.job(state=None, inputs={"a": {"path": str(root.folder(read).outputs / "rows.txt")}})
    pipeline = root.job(type="pipeline")
    steps = root.folder(pipeline).layout.steps
    steps.mkdir()
    (steps / "score.0.json").write_text(json.dumps({"step": "score", "action": "reuse", "job": reused}))
    Catalog(root.path).add("data", "rows", {"type": "uri_file", "path": str(root.folder(registered).outputs)})
    schedule = root.path / "schedules" / "daily"
    schedule.mkdir(parents=True)
    (schedule / "revision.1.json").write_text(json.dumps({"inputs": str(root.folder(scheduled).outputs)}))
    rules = Rules(keep_jobs_days=30, keep_notice_days=0)
    root.sweep(rules)
    report = root.sweep(rules)
    assert report.jobs == [free]
    assert free not in root.there()
    assert {resumed, read, reused, registered, scheduled, running} <= set(root.there())
    assert set(report.references) == {resumed, read, reused, registered, scheduled}


def test_retention_removes_a_pipeline_with_its_steps(root: Root) -> None:
    pipeline = root.job(type="pipeline")
    steps = [root.job(parent=Parent(job_id=pipeline, step=name, owner=pipeline)) for name in "ab"]
    root.pass_days(1)
    Marks(root.folder(pipeline)).delete(root.now)
    root.pass_days(2)
    assert root.sweep(Rules()).jobs == [pipeline, *sorted(steps)]
    assert root.there() == []


def test_retention_leaves_a_deleted_job_that_can_still_be_restored(root: Root) -> None:
    job = root.job()
    Marks(root.folder(job)).delete(root.now)
    root.pass_days(0.5)
    root.sweep(Rules())
    assert root.there() == [job]
    Marks(root.folder(job)).restore()
    root.pass_days(2)
    root.sweep(Rules())
    assert root.there() == [job]
    Marks(root.folder(job)).delete(root.now)
    root.pass_days(0.1)
    root.sweep(Rules(), is_urgent=True)
    assert root.there() == []


def test_retention_removes_snapshots_that_nothing_names(root: Root) -> None:
    used, _, fresh = (snapshot(root, text, days_ago=days) for text, days in (("a", 30), ("b", 30), ("c", 1)))
    root.job(code=used)
    root.sweep(Rules())
    assert {path.name for path in code_store(root.path).iterdir()} == {used, f"{used}.files", fresh, f"{fresh}.files"}


def test_retention_puts_back_a_snapshot_that_was_submitted_again_meanwhile(root: Root) -> None:
    name = snapshot(root, "a", days_ago=30)
    root.sweep(Rules(), pause=lambda _: root.job(code=name, state=None))
    assert (code_store(root.path) / name / "entry.py").exists()


def test_retention_puts_back_a_job_that_was_reopened_or_named_meanwhile(root: Root) -> None:
    reopened, named, going = root.job(), root.job(), root.job()
    root.pass_days(40)
    rules = Rules(keep_jobs_days=30, keep_notice_days=0)

    def meanwhile(_: float) -> None:
        aside = jobs_of(root.path) / f".removed-{reopened}"
        path = root.folder(reopened).layout.reopening(1)
        root.folder(reopened).path.mkdir(exist_ok=True)
        root.folder(reopened).reopen(Reopening(generation=1, at=root.now, retry_failed=False))
        path.rename(aside / path.name)
        root.folder(reopened).path.rmdir()
        root.job(state=None, resume_from=named)

    root.sweep(rules)
    root.sweep(rules, pause=meanwhile)
    assert {reopened, named} <= set(root.there())
    assert going not in root.there()


def test_retention_forgets_old_steps_and_those_of_jobs_that_are_gone(root: Root) -> None:
    job = root.job()
    for key, job_id in (("1" * 64, job), ("2" * 64, "job_" + "0" * 20)):
        add_finished(root.path, key, FinishedStep(job_id=job_id, generation=0, at=root.now))
    for path in finished_steps(root.path).rglob("*.json"):
        os.utime(path, (root.now, root.now))
    root.pass_days(1)
    root.sweep(Rules())
    assert [path.parent.name for path in finished_steps(root.path).rglob("*.json")] == ["1" * 64]
    root.pass_days(100)
    root.sweep(Rules())
    assert not list(finished_steps(root.path).rglob("*.json"))


def test_retention_removes_uploads_by_a_rule_only_and_never_those_that_are_named(root: Root) -> None:
    folder = uploads_of(root.path) / "container" / "a"
    folder.mkdir(parents=True)
    for name in ("named.txt", "free.txt", "new.txt"):
        (folder / name).write_text(name)
        at = root.now if name == "new.txt" else root.now - 100 * DAY_S
        os.utime(folder / name, (at, at))
    Catalog(root.path).add("data", "mine", {"type": "uri_file", "path": str(folder / "named.txt")})
    root.sweep(Rules())
    assert len(list(folder.iterdir())) == 3
    root.sweep(Rules(keep_uploads_days=30))
    assert {path.name for path in folder.iterdir()} == {"named.txt", "new.txt"}


def test_retention_keeps_the_latest_labelled_and_named_versions_of_assets(root: Root) -> None:
    catalog = Catalog(root.path)
    for number in range(1, 7):
        catalog.add("data", "rows", {"type": "uri_file", "path": f"/data/{number}"})
    catalog.set_label("data", "rows", "good", "1")
    root.job(state=None, inputs={"a": {"path": "/data/2"}})
    root.now = catalog.get("data", "rows", "6").created + DAY_S
    root.sweep(Rules())
    assert len(catalog.versions("data", "rows")) == 6
    root.sweep(Rules(keep_asset_versions=2))
    assert {asset.version for asset in catalog.versions("data", "rows")} == {"1", "2", "5", "6"}


def test_only_one_sweep_works_at_a_time(root: Root) -> None:
    root.sweep(Rules())
    fd = os.open(root.path / "retention" / ".lock", os.O_RDWR)
    fcntl.flock(fd, fcntl.LOCK_EX)
    assert Sweeper(root.path, Rules(), settle_s=0.0).run() is None
    os.close(fd)
    assert Sweeper(root.path, Rules(), settle_s=0.0).run() is not None


def test_a_plan_for_a_sweep_changes_nothing(root: Root) -> None:
    job = root.job()
    root.pass_days(40)
    before = sorted(path for path in root.path.rglob("*"))
    plan = Sweeper(root.path, Rules(), clock=lambda: root.now).plan()
    assert plan.removed["parts"].bytes == 1000
    assert sorted(path for path in root.path.rglob("*")) == before
    assert root.sweep(Rules()).removed == plan.removed
    assert (report := last_report(root.path)) is not None
    assert report.removed == plan.removed
    assert root.there() == [job]


def test_usage_says_what_takes_the_room(root: Root) -> None:
    small, large = root.job(rows=10), root.job(rows=100_000)
    usage = usage_of(root.path)
    assert [each.job for each in usage.largest] == [large, small]
    assert usage.bytes["parts"] == 100_010
    assert usage.bytes["jobs"] > 200_000
    assert usage.jobs == 2

    root.sweep(Rules())
    memory = root.path / "retention" / "measured.json"
    remembered = json.loads(memory.read_text())
    for facts in remembered["jobs"]:
        facts[JobFacts.__struct_fields__.index("bytes")] = 5
    memory.write_text(json.dumps(remembered))
    assert usage_of(root.path).bytes["jobs"] == 10
    memory.write_text(json.dumps({**remembered, "facts": remembered["facts"][:-1]}))
    assert usage_of(root.path).bytes["jobs"] == usage.bytes["jobs"], "a release with other facts measures again"


SWEEP = """
import sys
from pathlib import Path
from parallelrun_core.retention.rules import Rules
from parallelrun_core.retention.sweep import Sweeper
rules = Rules(keep_jobs_days=30, keep_notice_days=float(sys.argv[3]))
Sweeper(Path(sys.argv[1]), rules, clock=lambda: float(sys.argv[2]), settle_s=0.0).run()
"""


def sweep_in_a_process(root: Root, failpoint: str, notice_days: float) -> int:
    """Sweep in a process of its own; returns its exit status."""
    command = [sys.executable, "-c", SWEEP, str(root.path), str(root.now), str(notice_days)]
    armed = f"{failpoint}=kill" if failpoint else ""
    return subprocess.run(command, check=False, env={**os.environ, "PARALLELRUN_FAILPOINTS": armed}).returncode


@pytest.mark.slow
@pytest.mark.parametrize("point", POINTS)
def test_a_sweep_that_is_killed_at_this_step_is_finished_by_the_next(root: Root, point: str) -> None:
    needed, *going = (root.job() for _ in range(4))
    root.pass_days(40)
    resuming = root.job(state=None, resume_from=needed)
    unused = snapshot(root, "b", days_ago=30)
    if point != "retention.noticed":
        assert sweep_in_a_process(root, "", 0) == 0
        for job_id in going:  # as new ones, which have something to be stripped of
            assert Marks(root.folder(job_id)).notice is not None
    strips = root.job()
    root.now += 31 * DAY_S
    killed = 0
    for _ in range(3):
        status = sweep_in_a_process(root, point, 0)
        assert status in (0, -signal.SIGKILL)
        killed += status != 0
        assert {needed, resuming} <= set(root.there())
        assert (root.folder(needed).outputs / "rows.txt").exists()
    assert killed
    for _ in range(2):
        assert sweep_in_a_process(root, "", 0) == 0
    assert root.there() == [needed, resuming]
    assert strips not in root.there()
    assert not (code_store(root.path) / unused).exists()
    assert not list(jobs_of(root.path).glob(".removed-*"))
