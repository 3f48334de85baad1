"""`parallelrun schedule …` and `Client.schedules` against a real server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import httpx
import pytest
from msgspec.structs import replace

from parallelrun import Client, InvalidInput, NotFound
from parallelrun.cli import main, schedule
from parallelrun_core import errors as core
from parallelrun_core.computes.catalog import ComputeCatalog
from parallelrun_core.folder.job_folder import JobFolder
from tests.integration.api.conftest import ENTRY_SCRIPT, Site
from tests.integration.api.server import ApiServer

pytestmark = pytest.mark.integration

PIPELINE = """\
type: pipeline
display_name: score
inputs: {{images: {{path: {data}}}}}
jobs:
  score:
    type: parallel
    compute: azureml:cpu
    inputs: {{images: "${{{{parent.inputs.images}}}}"}}
    input_data: "${{{{inputs.images}}}}"
    mini_batch_size: "1"
    task: {{type: run_function, code: ./src, entry_script: main.py, environment: azureml:any:1}}
"""
SCHEDULE = """\
$schema: https://azuremlschemas.azureedge.net/latest/schedule.schema.json
name: nightly
display_name: Each night
trigger:
  type: recurrence
  frequency: day
  interval: 1
  schedule: {hours: [4, 5], minutes: [0]}
  time_zone: "Pacific Standard Time"
create_job:
  type: pipeline
  job: ./pipeline.yml
  display_name: changed
"""


@pytest.fixture
def documents(tmp_path: Path, site: Site) -> Path:
    """A folder with the files of a user: a schedule, its pipeline, and code below that."""
    folder = tmp_path / "documents"
    (folder / "src").mkdir(parents=True)
    (folder / "src" / "main.py").write_text(ENTRY_SCRIPT)
    (folder / "pipeline.yml").write_text(PIPELINE.format(data=site.data))
    (folder / "schedule.yml").write_text(SCHEDULE)
    return folder


@pytest.fixture(autouse=True)
def _server(api: httpx.Client, shared_api: ApiServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARALLELRUN_URL", f"http://127.0.0.1:{shared_api.port}")


def test_from_a_file_to_a_job_and_back(documents: Path, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schedule", "create", "-f", str(documents / "schedule.yml")]) == 0
    told = capsys.readouterr()
    assert told.out == "nightly\n"
    assert "next: 20" in told.err
    assert main(["schedule", "list"]) == 0
    assert "every day; hours: 4, 5; minutes: 0 (Pacific Standard Time)" in capsys.readouterr().out
    assert main(["schedule", "disable", "nightly"]) == 0
    assert main(["schedule", "trigger", "nightly"]) == 0
    job_id = capsys.readouterr().out.strip()
    record = JobFolder(root, job_id).record()
    assert record.spec["name"] == "changed"
    assert main(["schedule", "show", "nightly"]) == 0
    shown = capsys.readouterr().out
    assert "changed (parallel)" in shown
    assert f"manual {job_id}" in shown
    assert main(["schedule", "enable", "nightly"]) == 0
    assert main(["schedule", "show", "nightly", "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["enabled"] is True
    assert main(["schedule", "delete", "nightly"]) == 0
    assert main(["schedule", "show", "nightly"]) != 0


@pytest.fixture
def _as_it_was(api: httpx.Client, root: Path) -> Iterator[None]:
    """The server is that of other tests, too."""
    yield
    with suppress(core.NotFound):
        ComputeCatalog(root).remove("cpu")
    api.delete("/v1/schedules/nightly")


@pytest.mark.usefixtures("_as_it_was")
@pytest.mark.parametrize("has_compute", [False, True])
def test_that_a_compute_has_no_effect_is_said_only_where_there_is_none(
    documents: Path, api: httpx.Client, capsys: pytest.CaptureFixture[str], *, has_compute: bool
) -> None:
    """By all commands and methods that send a document, as the server alone knows."""
    if has_compute:
        answer = api.put("/v1/computes/cpu", json={"type": "local", "max_instances": 1})
        assert answer.status_code in {200, 201}, answer.text
    commands = [["schedule", "create", "-f", str(documents / "schedule.yml")]]
    commands += [["job", "create", "-f", str(documents / "pipeline.yml")]]
    for command in commands:
        assert main(command) == 0
        assert ("it names a compute, and has no effect" in capsys.readouterr().err) is not has_compute, command
    with Client() as client:
        made = client.schedules.create(documents / "schedule.yml").job.notes
        created = client.jobs.create(documents / "pipeline.yml").notes
    assert [any("names a compute" in note for note in notes) for notes in (made, created)] == [not has_compute] * 2


def test_what_is_wrong_is_said_with_its_line(documents: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = documents / "schedule.yml"
    file.write_text(SCHEDULE.replace("interval: 1", "interval: 0"))
    assert main(["schedule", "create", "-f", str(file)]) == 2
    assert f"{file}:7: /trigger/interval: must be greater than or equal to 1, not 0" in capsys.readouterr().err
    file.write_text(SCHEDULE)
    (documents / "pipeline.yml").write_text(PIPELINE.format(data="/x").replace("mini_batch_size", "mini_batch_sise"))
    assert main(["schedule", "create", "-f", str(file)]) == 2
    assert "pipeline.yml: /jobs/score/mini_batch_sise" in capsys.readouterr().err


def test_from_python(documents: Path, site: Site) -> None:
    with Client() as client:
        made = client.schedules.create(documents / "schedule.yml")
        assert (made.name, made.display_name, made.revision) == ("nightly", "Each night", 1)
        of_an_older_server = replace(made, due="")
        assert schedule._due(of_an_older_server) == schedule._due(made) == made.due
        assert schedule._due(replace(of_an_older_server, trigger={"type": "of a plug-in"})) == ""
        job = client.schedules.trigger("nightly")
        again = client.schedules.create(
            {"name": "again", "trigger": {"type": "cron", "expression": "0 4 * * *"}, "create_job": f"azureml:{job.id}"}
        )
        assert [each.name for each in client.schedules.list()] == ["again", "nightly"]
        assert again.job.spec["entry_script"] == "main.py"
        assert client.schedules.disable("again").next == []
        assert [fire.job_id for fire in client.schedules.history("nightly")] == [job.id]
        with pytest.raises(InvalidInput, match="there is no trigger"):
            client.schedules.create({"name": "x", "trigger": {"type": "?"}, "create_job": site.spec()})
        for name in ("again", "nightly"):
            client.schedules.delete(name)
        with pytest.raises(NotFound):
            client.schedules.get("again")
