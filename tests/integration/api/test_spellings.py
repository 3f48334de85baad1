"""Documents of Azure ML are jobs over HTTP, too; what is said about them is in the answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from parallelrun import Client
from parallelrun_core.folder.job_folder import JobFolder
from tests.conformance.documents import COMPONENT, CONFIG, PIPELINE, changed
from tests.integration.api.test_submit import zipped

if TYPE_CHECKING:
    from pathlib import Path

    import httpx

    from tests.integration.api.conftest import Site
    from tests.integration.api.server import ApiServer

pytestmark = pytest.mark.integration


def on_the_server(document: dict[str, Any], site: Site) -> dict[str, Any]:
    """The document with paths of the server."""
    data, code, script = str(site.data), str(site.code), "main.py"
    if document is PIPELINE:
        return changed(document, **{
            "inputs.raw.path": data, "jobs.score.inputs.model.path": data, "jobs.score.task.code": code,
            "jobs.score.task.entry_script": script,
        })  # fmt: skip
    if document is COMPONENT:
        return changed(document, **{"inputs.files.path": data, "task.code": code, "task.entry_script": script})
    config = {"parallel_run_config.source_directory": code, "parallel_run_config.entry_script": script}
    return changed(document, inputs=[data], **config)


@pytest.mark.parametrize("document", [PIPELINE, COMPONENT, CONFIG], ids=["pipeline", "component", "config"])
def test_a_document_of_azure_is_a_job(document: dict[str, Any], api: httpx.Client, site: Site, root: Path) -> None:
    answer = api.post("/v1/jobs", json=on_the_server(document, site))

    job = answer.json()
    assert answer.status_code == 202, answer.text
    assert JobFolder(root, job["id"]).record().job_spec().data_paths() == [str(site.data)]
    assert job["notes"]
    assert api.get(answer.headers["location"]).json()["notes"] == job["notes"]


def test_the_name_in_the_path_of_an_output_is_that_of_the_job(api: httpx.Client, site: Site, tmp_path: Path) -> None:
    where = {"jobs.score.outputs.scores": {"type": "uri_file", "path": f"{tmp_path}/${{{{name}}}}/all.csv"}}
    document = changed(on_the_server(PIPELINE, site), **where)
    jobs = [api.post("/v1/jobs", json=document).json() for _ in range(2)]

    paths = [job["spec"]["outputs"]["scores"]["path"] for job in jobs]
    assert paths == [f"{tmp_path}/{job['id']}/all.csv" for job in jobs]
    assert paths[0] != paths[1]


def test_its_code_may_be_sent_along(api: httpx.Client, site: Site) -> None:
    import json

    document = changed(on_the_server(PIPELINE, site), **{"jobs.score.task.code": None})
    code = zipped({"main.py": "def run(mini_batch):\n    return mini_batch\n"})
    answer = api.post(
        "/v1/jobs", data={"spec": json.dumps(document)}, files={"code": ("c.zip", code, "application/zip")}
    )

    assert answer.status_code == 202, answer.text


@pytest.mark.parametrize(
    "change",
    [
        ("jobs.score.mini_batch_size", 5, "/jobs/score/mini_batch_size", "a string"),
        ("jobs.score.task.code", "/nowhere", "/jobs/score/task/code", "no folder"),
        ("jobs.score.task.code", "./src", "/jobs/score/task/code", "is relative, but there is no job"),
        ("jobs.score.task.entry_script", "no.py", "/jobs/score/task/entry_script", "no file"),
        ("jobs.score.component", "./x.yml", "/jobs/score/component", "over the network"),
        ("jobs.score.task.environment", {"conda_file": "/etc/passwd"}, "/jobs/score/task/environment/conda_file",
         "over the network"),
        ("jobs.score.inputs.files", {"path": "/nowhere"}, "/jobs/score/inputs/files/path", "no file or folder"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_it_is_said_where_it_is(
    change: tuple[str, object, str, str], api: httpx.Client, site: Site
) -> None:
    path, value, pointer, why = change
    answer = api.post("/v1/jobs", json=changed(on_the_server(PIPELINE, site), **{path: value}))

    assert answer.status_code == 422, answer.text
    told = {entry["pointer"]: entry["message"] for entry in answer.json()["errors"]}
    assert why in told[pointer], told


def test_the_python_client_gets_the_notes_of_what_it_read_itself(
    shared_api: ApiServer, api: httpx.Client, site: Site
) -> None:
    assert api.get("/livez").status_code == 200
    with Client(f"http://127.0.0.1:{shared_api.port}") as client:
        job = client.jobs.create(on_the_server(PIPELINE, site))
        assert any("an environment of Azure ML is not built here" in note for note in job.notes)
        assert client.jobs.get(job.id).spec["append_row_to"] == "all_scores"
