"""Job files of Azure ML run as they are, each with one command."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from parallelrun_core.folder.metrics import read_metrics

pytestmark = [
    pytest.mark.acceptance,
    pytest.mark.skipif(sys.platform != "linux", reason="agents need Linux"),
]

EXAMPLES = Path(__file__).parents[2] / "examples" / "azure"


def flowers(out: Path) -> None:
    rows = [line.split(",") for line in (EXAMPLES / "flowers" / "data" / "flowers.csv").read_text().splitlines()[1:]]
    found = [line.replace(",", " ").split() for line in (out / "flowers.csv").read_text().splitlines()]
    assert [list(map(float, row[:4])) for row in found] == [list(map(float, row)) for row in rows]
    assert {row[4] for row in found} == {"lily", "rose", "tulip"}


def signs(out: Path) -> None:
    lines = [line.split(": ") for line in (out / "directions").read_text().splitlines()]
    assert len(lines) == 24
    assert all(name.endswith(f"_{direction}.txt") for name, direction in lines)


def juice(out: Path) -> None:
    models = [json.loads(path.read_text()) for path in sorted((out / "models").iterdir())]
    assert [(model["store"], model["brand"], model["weeks"]) for model in models] == [
        (store, brand, 4) for store in ("east", "north", "south") for brand in ("amber", "dew")
    ]
    assert all(model["slope"] < 0 for model in models)
    assert "Items: 24 in all, 24 succeeded, 0 failed." in (out / "logs" / "job_result.txt").read_text()


def letters(out: Path) -> None:
    assert (out / "text_1.tsv").read_text().splitlines()[0] == "e\t1"
    assert len(list(out.glob("text_*.tsv"))) == 9
    assert "text_1.txt has 9 letters" in "".join(
        path.read_text() for path in out.glob("logs/user/entry_script_log/*/*.txt")
    )


def totals(out: Path) -> None:
    assert (out / "totals" / "totals.csv").read_text().split() == ["store,sold", "north,12", "south,12"]
    assert "exit code 0" in (out / "logs" / "job_result.txt").read_text()
    (printed,) = out.glob("logs/user/stdout/*/*")
    assert printed.read_text().split() == ["east", "north", "south"]


def tides(out: Path) -> None:
    lines = (out / "report" / "tides.md").read_text().splitlines()
    assert [line.split()[1] for line in lines[2:]] == ["bay", "cape", "isle"]
    assert lines[2] == "| bay | 4.45 m at 16 | 1.52 m at 22 |"
    assert {path.name for path in (out / "logs").iterdir() if path.is_dir()} == {"find", "report", "split", "sys"}


@pytest.mark.parametrize(
    "file, check",
    [
        ("flowers/pipeline.yml", flowers),
        ("signs/pipeline.yml", signs),
        ("juice/pipeline.yml", juice),
        ("letters/config.yml", letters),
        ("totals/command.yml", totals),
        ("tides/pipeline.yml", tides),
    ],
)
def test_a_job_file_of_azure_runs_as_it_is(file: str, check: Callable[[Path], None], tmp_path: Path) -> None:
    run(file, tmp_path)
    check(tmp_path / "out")


def test_a_batch_deployment_runs_over_the_data_of_an_invocation(tmp_path: Path) -> None:
    run("moods/deployment.yml", tmp_path, "--input", str(EXAMPLES / "moods" / "letters"))
    assert (tmp_path / "out" / "moods.csv").read_text().split() == [
        "anna.txt,glad", "ben.txt,sad", "carl.txt,sad", "dora.txt,glad", "emil.txt,glad",
    ]  # fmt: skip
    metrics = read_metrics(tmp_path / "out" / "logs").metrics
    assert sorted(str(point.value) for point in metrics["letters"].points) == ["1", "2", "2"]


ASKS_FOR_A_MODEL = """
import json
from pathlib import Path
from azureml.core import Model, Workspace

def init():
    global weights
    folder = Path(Model.get_model_path("moods", _workspace=Workspace.from_config()))
    weights = json.loads((folder / "weights.json").read_text())

def run(mini_batch):
    return [len(weights) + Model(Workspace.from_config(), "moods").version] * len(mini_batch)
"""


def test_a_script_finds_a_registered_model_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "model.yml").write_text(f"name: moods\npath: {EXAMPLES / 'moods' / 'model'}\n")
    parallelrun(tmp_path, "model", "create", "-f", "model.yml", "--local")
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "score.py").write_text(ASKS_FOR_A_MODEL)
    job = f"code: src\nentry_script: score.py\ninputs: {EXAMPLES / 'moods' / 'letters'}\n"
    (tmp_path / "job.yml").write_text(job)
    parallelrun(tmp_path, "run", "job.yml", "--output", "out")
    assert (tmp_path / "out" / "parallel_run_step.txt").read_text().split() == ["5"] * 5
    run("moods/deployment.yml", tmp_path / "named", "--input", str(EXAMPLES / "moods" / "letters"), "--set",
        "model=azureml:moods@latest")  # fmt: skip
    assert "anna.txt,glad" in (tmp_path / "named" / "out" / "moods.csv").read_text()


def test_partition_keys_need_no_folders_for_them(tmp_path: Path) -> None:
    """The same sales in one file, which Azure would have to be given in folders."""
    lines = [
        f"{week},{path.parts[-3]},{path.parts[-2]}\n"
        for path in sorted((EXAMPLES / "juice" / "sales").rglob("weeks.csv"))
        for week in path.read_text().splitlines()[1:]
    ]
    (tmp_path / "sales").mkdir()
    (tmp_path / "sales" / "all.csv").write_text("week,price,sold,store,brand\n" + "".join(sorted(lines)))
    (tmp_path / "sales" / "MLTable").write_text("paths:\n- file: ./all.csv\ntransformations:\n- read_delimited\n")
    run("juice/pipeline.yml", tmp_path, "--set", f"jobs.fit.inputs.sales.path={tmp_path / 'sales'}")
    juice(tmp_path / "out")


def run(file: str, folder: Path, *options: str) -> None:
    folder.mkdir(exist_ok=True)
    parallelrun(folder, "run", str(EXAMPLES / file), "--output", str(folder / "out"), *options)


def parallelrun(folder: Path, *arguments: str) -> None:
    command = [sys.executable, "-P", "-m", "parallelrun", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, check=False, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
