"""What the user's code is surrounded by: no secret, no descriptor, no module of ours."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.integration.worker.worker_harness import WorkerHarness

pytestmark = pytest.mark.integration

Start = Callable[..., WorkerHarness]


def test_no_descriptor_but_its_own_beside_the_standard_ones(start: Start, tmp_path: Path) -> None:
    # Things that an agent has open, some of them without the flag that closes them on exec.
    noise = os.open(tmp_path, os.O_RDONLY)
    os.set_inheritable(noise, True)
    script = """
        import json, os
        SEEN = {fd: os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd")
                if os.path.exists(f"/proc/self/fd/{fd}") or os.path.islink(f"/proc/self/fd/{fd}")}
        def run(items):
            return [json.dumps(SEEN)]
    """
    try:
        harness = start(script).ready()
        seen: dict[str, str] = json.loads(harness.run("x").rows)
    finally:
        os.close(noise)
    beyond = {fd: target for fd, target in seen.items() if int(fd) > 2 and "/proc/" not in target}
    kinds = sorted(target.partition(":")[0].rpartition("/")[2] for target in beyond.values())
    assert kinds == ["memfd", "memfd", "part", "pipe", "pipe", "stderr.txt", "stdout.txt"], "deliveries, and stacks"
    assert seen["0"] == "/dev/null"


def test_children_of_the_user_inherit_none_of_them(start: Start) -> None:
    harness = start("""
        import subprocess
        def run(items):
            return subprocess.check_output(["ls", "/proc/self/fd"], text=True, close_fds=False).split()
    """).ready()
    assert set(harness.run("x").rows.decode().split()) <= {"0", "1", "2", "3"}  # 3 is ls itself, reading the folder


def test_no_variable_of_ours_is_in_its_environment(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARALLELRUN_REDIS_URL", "redis://:canary@host")
    monkeypatch.setenv("REDIS_PASSWORD", "canary")
    harness = start("import os\ndef run(items):\n    return [f'{k}={v}' for k, v in os.environ.items()]").ready()
    text = harness.run("x").rows.decode()
    assert "canary" not in text
    assert not [line for line in text.splitlines() if line.startswith(("PARALLELRUN_", "REDIS_"))]
    assert "canary" not in Path(f"/proc/{harness.worker.pid}/cmdline").read_text()
    assert b"canary" not in Path(f"/proc/{harness.worker.pid}/environ").read_bytes()


def test_before_the_users_first_import_there_is_nothing_but_the_standard_library(start: Start) -> None:
    harness = start("""
        import sys
        SEEN = sorted({name.partition(".")[0] for name in sys.modules})
        import json
        def run(items):
            return [json.dumps([SEEN, sorted(sys.stdlib_module_names)])]
    """).ready()
    seen, standard = json.loads(harness.run("x").rows)
    strangers = set(seen) - set(standard) - {"__main__", "score", "parallelrun_worker"}
    # What .pth files of the interpreter's environment import is not ours, nor what measures the coverage.
    strangers -= {"coverage", "$coverage"}
    assert {name for name in strangers if not name.startswith(("_", "sitecustomize", "usercustomize"))} == set()
    assert "queue" not in seen
    assert not {"parallelrun_core", "parallelrun_agent", "redis", "pandas", "numpy", "msgspec"} & set(seen)


def test_working_folder_arguments_and_job_are_set_before_the_import(start: Start) -> None:
    harness = start(
        """
        import json, os, sys
        SEEN = [os.getcwd(), sys.argv, os.environ.get("AZUREML_RUN_ID"), __name__, os.getpgid(0) == os.getpid()]
        def run(items):
            return [json.dumps(SEEN)]
    """,
        argv=["--model", "a b"],
        AZUREML_RUN_ID="job_1",
    ).ready()
    assert json.loads(harness.run("x").rows) == [
        str(harness.working_folder), ["score.py", "--model", "a b"], "job_1", "score", True,
    ]  # fmt: skip


def test_multiprocessing_works_within_run(start: Start) -> None:
    harness = start("""
        import multiprocessing
        def square(n): return n * n
        def run(items):
            with multiprocessing.get_context("fork").Pool(2) as pool:
                return pool.map(square, range(4))
    """).ready()
    assert harness.run("x").rows == b"0\n1\n4\n9\n"
    assert harness.run("x", mini_batch=1).rows == b"0\n1\n4\n9\n"


def test_the_users_own_modules_win_over_the_standard_library(start: Start) -> None:
    script = "import queue, shared\ndef run(items):\n    return [queue.MINE, shared.MINE]"
    harness = start(script, modules={"queue": "MINE = 1", "shared": "MINE = 2"}).ready()
    assert harness.run("x").rows == b"1\n2\n"


def test_what_a_script_logs_as_metrics_is_in_the_logs_at_once(start: Start) -> None:
    harness = start("""
        from parallelrun import log_metric
        def run(items):
            log_metric("items", len(items), step=3)
            return items
    """).ready()
    folder = harness.logs / "user" / "metrics" / "node000"
    assert not folder.exists()
    harness.run("a", "b")
    (line,) = (folder / "process000.jsonl").read_text().splitlines()
    point = json.loads(line)
    assert (point["name"], point["value"], point["step"]) == ("items", 2, 3)
