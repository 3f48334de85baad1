"""Real workers on the oldest Pythons that a job's environment may have, where this machine has them."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from parallelrun_worker import frames
from tests.integration.worker.worker_harness import WorkerHarness

pytestmark = pytest.mark.integration

AGENT = Path(__file__).parents[3] / "services" / "agent"

SCRIPT = """
import atexit, logging
from azureml_user.parallel_run import EntryScript
own = open("own.csv", "w")
atexit.register(lambda: open("handler", "w").close())
def init():
    EntryScript().logger.info("begins")
def run(items):
    own.write("a row\\n")
    logging.warning("runs")
    if items == ["bad"]:
        raise ValueError("bad")
    return items
"""


def interpreter(version: str) -> str:
    """The path of this Python; skips the test where there is none."""
    program = [f"python{version}", "-c", "import sys; print(sys.executable)"]
    try:  # the variable is for machines on which pyenv keeps several
        environment = {**os.environ, "PYENV_VERSION": version}
        found = subprocess.run(program, capture_output=True, text=True, env=environment, check=False)
    except OSError:
        found = None
    if found is None or found.returncode:
        pytest.skip(f"no Python {version} here")
    return found.stdout.strip()


@pytest.mark.parametrize("kind", ["text", "jsonl"])
@pytest.mark.parametrize("version", ["3.8", "3.9", "3.10"])
def test_a_worker_begins_runs_reads_tells_and_ends(
    start: Callable[..., WorkerHarness], version: str, kind: str
) -> None:
    output = {"format": kind, "header": False, "separator": " ", "safe": False}
    harness = start(SCRIPT, python=interpreter(version), config={"output": output}, PYTHONPATH=str(AGENT)).ready()
    assert harness.run("a", "b").rows == {"text": b"a\nb\n", "jsonl": b'"a"\n"b"\n'}[kind]
    assert harness.run("bad", mini_batch=1).error["message"] == "ValueError: bad"
    gone = str(harness.logs.parent / "gone.txt")
    plan = {"name": "data", "kind": "files", "is_copied": True, "root": str(harness.logs.parent), "keys": []}
    (harness.logs.parent / "inputs.json").write_text(json.dumps([plan]))
    described = json.dumps({"input": 0, "keys": [], "pieces": [], "paths": [gone]}).encode()
    harness.deliver(2, described, frames.DESCRIBED)
    error = harness.wait_for_answers(3)[2].error
    assert error["category"] == "INPUT_UNREADABLE"
    assert "No such file" in error["message"]
    harness.worker.end()
    assert harness.exited() == 0
    assert (harness.working_folder / "own.csv").read_text() == "a row\n" * 2
    assert (harness.working_folder / "handler").exists()


@pytest.mark.parametrize("version", ["3.8", "3.13"])
def test_a_thread_that_hangs_is_broken_off(start: Callable[..., WorkerHarness], version: str) -> None:
    hanging = "import threading, time\nthreading.Thread(target=time.sleep, args=(1000,)).start()\n" + SCRIPT
    harness = start(hanging, python=interpreter(version), config={"exit_s": 3.0}, PYTHONPATH=str(AGENT)).ready()
    harness.run("a")
    harness.worker.end()
    assert harness.exited() == 0
    assert (harness.working_folder / "own.csv").read_text() == "a row\n"
