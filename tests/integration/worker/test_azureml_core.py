"""Scripts that import Azure ML's first SDK, in workers whose Python doesn't have it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from parallelrun_core.folder.metrics import read_metrics
from tests.integration.worker.worker_harness import WorkerHarness

pytestmark = pytest.mark.integration

Start = Callable[..., WorkerHarness]


@pytest.fixture
def job(tmp_path: Path) -> dict[str, Any]:
    """What an agent says of a job with a model and a folder of pictures."""
    model, pictures = tmp_path / "model-7", tmp_path / "pictures"
    for folder, name in ((model, "weights.bin"), (pictures, "a.png")):
        folder.mkdir()
        (folder / name).write_text(name)
    return {
        "name": "petals", "tags": {"team": "roses"}, "parent": "",
        "inputs": {"pictures": str(pictures), "limit": 5},
        "models": [
            {"name": "flowers", "version": "7", "path": str(model)},
            {"name": "flowers", "version": "6", "path": "/gone"},
            {"name": "far", "version": "1", "path": "s3://bucket/far"},
            {"name": "given", "version": "", "path": str(model)},
        ],
    }  # fmt: skip


def begin(start: Start, script: str, job: dict[str, Any], **env: str) -> WorkerHarness:
    return start(script, config={"job": job}, AZUREML_RUN_ID="job_1", **env).ready()


def test_a_script_finds_its_model_logs_and_uploads(start: Start, job: dict[str, Any]) -> None:
    harness = begin(
        start,
        """
        import argparse, fastavro, os, pandas
        from azureml.core import Dataset, Model, Run, Workspace
        from azureml.core.run import _OfflineRun

        def init():
            global model, run
            run = Run.get_context()
            assert not isinstance(run, _OfflineRun)
            model = Model.get_model_path("flowers")
            run.log("weights", len(open(os.path.join(model, "weights.bin")).read()))

        def run(mini_batch):
            here = Run.get_context()
            here.log_row("seen", files=len(mini_batch), first=mini_batch[0])
            here.log_list("sizes", (1, 2))
            here.log_table("table", {"a": [1, 2]})
            open("note.txt", "w").write("hello")
            here.upload_file("outputs/note.txt", "note.txt")
            here.upload_file("logs/note.txt", "note.txt")
            workspace = here.experiment.workspace
            pictures = Dataset.get_by_name(workspace, "Pictures")
            frame = pandas.DataFrame({"row": [1, 2]})
            frame.to_csv("rows.txt", index=False)
            frame.to_json("rows.ndjson", orient="records", lines=True)
            frame.to_parquet("rows.parquet")
            with open("rows.avro", "wb") as file:
                fields = [{"name": "row", "type": "long"}]
                fastavro.writer(file, {"type": "record", "name": "r", "fields": fields}, frame.to_dict("records"))
            for ending in ("txt", "ndjson", "parquet", "avro"):
                table = Dataset.Tabular.from_delimited_files(f"rows.{ending}").to_pandas_dataframe()
                pandas.testing.assert_frame_equal(table, frame)
            with open("odd.jsonl", "w") as file:
                file.write('{"id": "007", "date": "2024-01-05", "n": 18446744073709551616}\\n')
            odd = Dataset.Tabular.from_json_lines_files("odd.jsonl").to_pandas_dataframe()
            assert odd.to_dict("records") == [{"id": "007", "date": "2024-01-05", "n": 1 << 64}]
            return [
                here.id, here.experiment.name, model, here.tags["team"], here.parent is None,
                here.input_datasets["pictures"].to_path(), here.input_datasets["LIMIT"], pictures.mount().mount_point,
                Model(workspace, "flowers").version, Model(workspace, "flowers", version=6).path,
                here.get_metrics("sizes"), sorted(workspace.models),
                Model(workspace, "given").download("kept"),
            ]
        """,
        job,
    )  # fmt: skip
    folder = Path(job["inputs"]["pictures"])
    rows = harness.run("x").rows.decode().splitlines()
    assert rows == [
        "job_1", "parallelrun", job["models"][0]["path"], "roses", "True",
        str([str(folder / "a.png")]), "5", str(folder), "7", "/gone", "{'sizes': [1, 2]}",
        "['far', 'flowers', 'given']", f"kept/{Path(job['models'][0]['path']).name}",
    ]  # fmt: skip
    metrics = read_metrics(harness.logs).metrics
    assert {name: metric.last for name, metric in metrics.items()} == {
        "weights": 11, "seen": {"files": 1, "first": "x"}, "sizes": [1, 2], "table": {"a": [1, 2]},
    }  # fmt: skip
    assert (harness.logs.parent / "note.txt").read_text() == "hello"
    assert (harness.logs / "user" / "files" / "node000" / "process000" / "note.txt").read_text() == "hello"


@pytest.mark.parametrize(
    "line, told",
    [
        ("from azureml.core import Webservice", "azureml.core.Webservice is not part of ParallelRun's stand-in"),
        ("import azureml.core.compute", "No module named 'azureml.core.compute'"),
        ("from azureml.core import Model; Model.get_model_path('roses')", "The job knows no model 'roses'"),
        ("from azureml.core import Model; Model.get_model_path('flowers', version=9)", "'flowers' of version 9"),
        ("from azureml.core import Model; Model.get_model_path('far')", "make it an input of the job"),
        ("from azureml.core import Dataset; Dataset.get_by_name(None, 'x')", "no input 'x'; it has: pictures"),
        ("from azureml.core import Datastore; Datastore.get(None, 'x')", "make what is read an input of the job"),
        ("from azureml.core import Run; Run.get_context().upload_file('../x', 'x')", "not the name of a file"),
    ],
)  # fmt: skip
def test_what_is_not_there_says_what_to_do(line: str, told: str, start: Start, job: dict[str, Any]) -> None:
    harness = begin(start, f"def run(items):\n    {line}\n", job)
    assert told in harness.run("x").error["message"]


def real_package(folder: Path, *, with_init: str | None) -> dict[str, str]:
    """A package `azureml` with a `core` of its own, as an installed one is."""
    core = folder / "azureml" / "core"
    core.mkdir(parents=True)
    (core / "__init__.py").write_text("Run = 'the real one'\n")
    if with_init is not None:
        (folder / "azureml" / "__init__.py").write_text(with_init)
    return {"PYTHONPATH": os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])}


OLD_STYLE = "__path__ = __import__('pkgutil').extend_path(__path__, __name__)\n"


@pytest.mark.parametrize("with_init", ["", OLD_STYLE, None])
def test_a_real_package_wins(with_init: str | None, start: Start, job: dict[str, Any], tmp_path: Path) -> None:
    env = real_package(tmp_path / "site", with_init=with_init)
    harness = begin(start, "from azureml.core import Run\ndef run(items):\n    return [Run]\n", job, **env)
    assert harness.run("x").rows == b"the real one\n"


@pytest.mark.parametrize("with_init", [OLD_STYLE, None])
def test_the_stand_in_is_found_beside_other_packages_of_azureml(
    with_init: str | None, start: Start, job: dict[str, Any], tmp_path: Path
) -> None:
    env = real_package(tmp_path / "site", with_init=with_init)
    (tmp_path / "site" / "azureml" / "core").rename(tmp_path / "site" / "azureml" / "other")
    script = """
        import json
        import azureml.other
        from azureml.core.run import Run
        def run(items):
            return [json.dumps([azureml.other.Run, Run.get_context().id])]
    """
    assert json.loads(begin(start, script, job, **env).run("x").rows) == ["the real one", "job_1"]


def test_outside_of_a_job_it_remembers_metrics() -> None:
    from parallelrun_worker.shims.run import Run, _OfflineRun

    run = Run.get_context()
    assert isinstance(run, _OfflineRun)
    with pytest.raises(RuntimeError, match="allow_offline"):
        Run.get_context(allow_offline=False)
