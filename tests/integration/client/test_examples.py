"""The examples are what users try first, so they have to work as they are."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from parallelrun import Cluster
from parallelrun.report.facts import gather
from parallelrun.report.page import page

pytestmark = [
    pytest.mark.integration,
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="agents need Linux"),
]

ROOT = Path(__file__).parents[3]
EXAMPLES = ROOT / "examples"


@pytest.fixture
def examples(tmp_path: Path) -> Path:
    """A copy without what earlier runs have left."""
    return shutil.copytree(EXAMPLES, tmp_path / "examples", ignore=shutil.ignore_patterns("out", "images", "*.joblib"))


def test_digits_are_recognized_and_a_second_run_replaces_the_output(examples: Path) -> None:
    pytest.importorskip("sklearn")
    shutil.rmtree(examples / "digits" / "data", ignore_errors=True)
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, str(examples / "digits" / "main.py")],
            capture_output=True,
            text=True,
            check=False,
            timeout=110,
        )

        assert done.returncode == 0, done.stderr
        output, accuracy, logs = done.stdout.splitlines()[-3:]
        assert output == f"output: {examples}/digits/out/digits.txt"
        assert float(accuracy.removeprefix("accuracy: ")) > 0.95
        assert logs == f"logs: {examples}/digits/out/logs"

    rows = (examples / "digits" / "out" / "digits.txt").read_text().splitlines()
    assert [row.split()[0] for row in rows] == [f"{number:04}.png" for number in range(899)]


def test_words_are_counted(examples: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-P", "-m", "parallelrun", "run", str(examples / "word_count" / "job.yml")]
    done = subprocess.run([*command, "--output", str(tmp_path / "out")], capture_output=True, check=False, timeout=60)

    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out" / "words.txt").read_text().splitlines() == [
        "bucket.txt: 19 words", "fox.txt: 13 words", "heron.txt: 16 words", "proverb.txt: 7 words",
    ]  # fmt: skip


def test_what_the_first_pages_show_of_python_works(tmp_path: Path) -> None:
    text = "".join((ROOT / page).read_text() for page in ("README.md", "docs/clusters.md"))
    blocks = re.findall(r"```(python|yaml)\n(.*?)```", text, re.DOTALL)
    script, run_one, use_a_client = (text for kind, text in blocks if kind == "python")
    (job,) = (text for kind, text in blocks if kind == "yaml")
    shutil.copytree(EXAMPLES / "word_count", tmp_path, ignore=shutil.ignore_patterns("out"), dirs_exist_ok=True)
    for shown, file in ((script, "src/count_words.py"), (job, "job.yml")):
        assert (tmp_path / file).read_text().endswith(shown.partition("\n")[2]), "the README shows the file as it is"

    def do(python: str, **environment: str) -> str:
        command = [sys.executable, "-P", "-c", python]
        done = subprocess.run(
            command, cwd=tmp_path, capture_output=True, check=False, text=True, timeout=90, env=os.environ | environment
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    words = ["bucket.txt: 19 words", "fox.txt: 13 words", "heron.txt: 16 words", "proverb.txt: 7 words"]
    for _ in range(2):
        assert do(run_one).splitlines() == [*words, f" logs: {tmp_path}/out/logs"]
    with Cluster(tmp_path / "cluster", processes=1) as cluster:
        said = do(use_a_client, PARALLELRUN_URL=cluster.url, PARALLELRUN_TOKEN=cluster.token).splitlines()
    assert said[-2:] == ["completed 2 of 2", "fetched/words.txt"]
    assert (tmp_path / "fetched" / "words.txt").read_text().splitlines() == words


def test_what_init_writes_runs_at_once_on_files_and_on_a_table(tmp_path: Path) -> None:
    with Cluster(tmp_path / "cluster", processes=2) as cluster, cluster.client() as client:
        for data, output in (("files", "results.txt"), ("table", "results.csv")):
            answers = ["--data", data, "--result", "rows"]
            done = subprocess.run(
                [sys.executable, "-m", "parallelrun", "init", str(tmp_path / data), *answers],
                capture_output=True, stdin=subprocess.DEVNULL, text=True, timeout=60, check=True,
            )  # fmt: skip
            assert (tmp_path / data / "job.yml").as_posix() in done.stdout.splitlines()
            job = client.jobs.create(tmp_path / data / "job.yml")
            ended = client.jobs.wait(job.id, timeout_s=100)
            assert ended.progress.rows == (5 if data == "files" else 24)
            rows = client.outputs.download(job.id, output, tmp_path / output).read_text()
            assert rows.count("\n") == (5 if data == "files" else 25)
            report = page(gather(client, job.id))
            for heading in ("Where the time went", "Throughput", "Mini-batches", "Workers", "Settings"):
                assert f"<h2>{heading}</h2>" in report
