"""What the documents of this folder do on a cluster: how each step ends, and what it leaves."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from parallelrun import (
    Client,
    Cluster,
    Environment,
    Input,
    Job,
    OutputFileDatasetConfig,
    ParallelRunConfig,
    ParallelRunStep,
    Pipeline,
    PipelineData,
    PipelineParameter,
    PythonScriptStep,
)
from parallelrun.job_file.reading import read_job_file
from parallelrun_core.folder.job_folder import JobFolder
from tests.conformance.pipelines.documents import DOCUMENTS, HERE, NOT_RUN

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(900)]
WITHIN_S: Final = 600.0
"""All pipelines are submitted at once, and end within half a minute on a machine that is quiet."""


@dataclass
class Site:
    """A cluster, and a copy of the documents: some of them write beside themselves."""

    client: Client
    root: Path
    documents: Path

    def ended(self, job_id: str) -> Job:
        """The job when it has ended, and all of its steps are told."""
        job = self.client.jobs.wait(job_id, timeout_s=WITHIN_S, raise_on_failure=False)
        deadline = time.monotonic() + WITHIN_S
        while any(step.state in ("waiting", "running") for step in job.steps):
            assert time.monotonic() < deadline, job.steps
            time.sleep(0.05)
            job = self.client.jobs.get(job_id)
        return job

    def outcome(self, job: Job) -> dict[str, Any]:
        """How a pipeline has ended: its state, its steps with the files that they made, its outputs."""
        steps = {step.name: self._of_step(step.state, step.job, step.type) for step in job.steps}
        outcome: dict[str, Any] = {"state": job.state, "steps": steps}
        made = {given.name: _content(Path(given.path)) for given in job.outputs if given.path}
        return outcome | ({"outputs": made} if made else {})

    def _of_step(self, state: str, job_id: str | None, kind: str) -> Any:
        if job_id is None:
            return state
        if kind == "pipeline":
            return self.outcome(self.ended(job_id))
        made = _content(JobFolder(self.root, job_id).outputs)
        return {"state": state, "made": made} if made else state


def _content(path: Path) -> Any:
    """The text of a file, or that of each file of a folder."""
    if not path.is_dir():
        return path.read_text(encoding="utf-8")
    return {each.name: _content(each) for each in sorted(path.iterdir()) if each.is_file() or _content(each)}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    home = tmp_path_factory.mktemp("pipelines")
    shutil.copytree(HERE, home / "pipelines", ignore=shutil.ignore_patterns("*.py", "__pycache__", "expected"))
    (home / "pipelines" / "documents" / "src").mkdir(exist_ok=True)
    shutil.copy(HERE / "documents" / "src" / "score.py", home / "pipelines" / "documents" / "src")
    with Cluster(home / "cluster", nodes=2, processes=2) as cluster, cluster.client() as client:
        yield Site(client, cluster.layout.root, home / "pipelines" / "documents")


RUN = [path for path in DOCUMENTS if path.stem not in NOT_RUN]


@pytest.fixture(scope="module")
def jobs(site: Site) -> dict[str, str]:
    """All of them run side by side."""
    return {path.name: site.client.jobs.create(site.documents / path.name).id for path in RUN}


@pytest.mark.parametrize("path", RUN, ids=lambda path: path.stem)
def test_a_pipeline_ends_as_expected(site: Site, jobs: dict[str, str], path: Path) -> None:
    expected = yaml.safe_load((HERE / "outcomes" / path.name).read_text(encoding="utf-8"))
    assert site.outcome(site.ended(jobs[path.name])) == expected


ROW: Final = ("first", "second", "third")


def a_row_of_steps(folder: Path, switches: Path) -> Path:
    """A pipeline of steps in a row, each of which fails as long as there is no file of its name."""
    command = "test -e {}/{} && cat ${{{{inputs.from}}}} > ${{{{outputs.to}}}} && echo {} >> ${{{{outputs.to}}}}"
    (folder / "nothing").touch()
    document: dict[str, Any] = {"type": "pipeline", "jobs": {}}
    earlier: Any = {"path": "./nothing", "type": "uri_file"}
    for name in ROW:
        document["jobs"][name] = {
            "command": command.format(switches, name, name),
            "inputs": {"from": earlier},
            "outputs": {"to": {"type": "uri_file"}},
            "is_deterministic": False,
        }
        earlier = f"${{{{parent.jobs.{name}.outputs.to}}}}"
    file = folder / "row.yml"
    file.write_text(yaml.safe_dump(document))
    return file


@pytest.mark.parametrize("failing", ROW)
def test_a_resumed_pipeline_goes_on_at_the_step_that_failed(site: Site, tmp_path: Path, failing: str) -> None:
    done = ROW[: ROW.index(failing)]
    for name in done:
        (tmp_path / name).touch()
    job = site.ended(site.client.jobs.create(a_row_of_steps(tmp_path, tmp_path)).id)
    expected = {name: "completed" if name in done else "failed" if name == failing else "skipped" for name in ROW}
    assert {step.name: step.state for step in job.steps} == expected
    ends = {step.name: step.ended for step in job.steps}

    for name in ROW:
        (tmp_path / name).touch()
    site.client.jobs.resume(job.id)
    again = site.ended(job.id)
    assert {step.name: step.state for step in again.steps} == dict.fromkeys(ROW, "completed")
    assert {name: again.step(name).ended for name in done} == {name: ends[name] for name in done}, "they ran once"
    last = again.step("third").job
    assert last is not None
    assert (JobFolder(site.root, last).outputs / "to").read_text() == "first\nsecond\nthird\n"


@pytest.mark.parametrize(
    "change, is_reused",
    [
        (lambda document: None, True),
        (lambda document: document.update(settings={"force_rerun": True}), False),
        (lambda document: document["jobs"]["say"].update(is_deterministic=False), False),
        (lambda document: document["jobs"]["say"].update(command="echo other > ${{outputs.said}}"), False),
    ],
    ids=["the same", "force_rerun", "not deterministic", "another command"],
)
def test_a_step_is_reused_unless_something_differs(
    site: Site, tmp_path: Path, change: Callable[[dict[str, Any]], object], is_reused: bool
) -> None:
    text = f"it is {tmp_path.name}"
    say = {"command": f"echo {text} > ${{{{outputs.said}}}}", "outputs": {"said": {"type": "uri_file"}}}
    document: dict[str, Any] = {"type": "pipeline", "jobs": {"say": say}}
    first = site.ended(site.client.jobs.create(document).id)
    change(document)
    second = site.ended(site.client.jobs.create(document).id)
    assert (first.state, second.state, second.step("say").reused) == ("completed", "completed", is_reused)
    assert (second.step("say").job == first.step("say").job) is is_reused


def test_a_new_pipeline_takes_over_what_an_earlier_one_has_finished(site: Site, tmp_path: Path) -> None:
    say = {"command": f"echo {tmp_path.name} > ${{{{outputs.to}}}}", "outputs": {"to": {"type": "uri_file"}}}
    use = {
        "command": f"test -e {tmp_path}/it && cat ${{{{inputs.of}}}} > ${{{{outputs.to}}}}",
        "inputs": {"of": "${{parent.jobs.say.outputs.to}}"},
        "outputs": {"to": {"type": "uri_file"}},
    }
    (file := tmp_path / "two.yml").write_text(yaml.safe_dump({"type": "pipeline", "jobs": {"say": say, "use": use}}))
    first = site.ended(site.client.jobs.create(file).id)
    assert {step.name: step.state for step in first.steps} == {"say": "completed", "use": "failed"}
    (tmp_path / "it").touch()
    spec = read_job_file(file).spec.model_copy(update={"resume_from": first.id})
    second = site.ended(site.client.jobs.create(spec).id)
    assert {step.name: (step.state, step.reused) for step in second.steps} == {
        "say": ("completed", True),
        "use": ("completed", False),
    }
    assert second.step("say").job == first.step("say").job


def test_a_pipeline_of_v1_runs_with_the_values_of_its_parameters(site: Site, tmp_path: Path) -> None:
    raw, prepared, scores = (
        Input(path=str(site.documents / "data")),
        OutputFileDatasetConfig("all").register_on_complete("prepared"),
        PipelineData("rows").as_dataset(),
    )
    (tmp_path / "prepare.py").write_text(
        "import shutil, sys\nshutil.copytree(sys.argv[1], sys.argv[2], dirs_exist_ok=True)\n"
        "print(sys.argv[3], file=open(sys.argv[2] + '/given.txt', 'w'))\n"
    )
    given = PipelineParameter("given", "nothing")
    prepare = PythonScriptStep(
        "prepare.py", "prepare", [raw, prepared, given], inputs=[raw], source_directory=str(tmp_path)
    )
    config = ParallelRunConfig(
        environment=Environment("e"), entry_script="score.py", source_directory=str(site.documents / "src"),
        error_threshold=-1, output_action="append_row", compute_target="c", node_count=2, mini_batch_size="1",
    )  # fmt: skip
    score = ParallelRunStep("score", config, [prepared.as_input("files")], output=scores, arguments=["--limit", given])
    pipeline = Pipeline(steps=[score]).submitted_with({"given": "this"})
    assert prepare.wires.outputs == {prepared: "all"}

    outcome = site.outcome(site.ended(site.client.jobs.create(pipeline).id))
    rows = "given.txt this this\none.txt one this\ntwo.txt two this\n"
    assert outcome["state"] == "completed"
    assert outcome["steps"]["score"] == {"state": "completed", "made": {"rows": {"parallel_run_step.txt": rows}}}
    assert site.client.data.get("prepared").name == "prepared"
