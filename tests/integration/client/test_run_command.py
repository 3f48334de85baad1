"""`parallelrun run`, with all services: what it writes and prints, and that no process remains."""

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import pytest

from parallelrun_core.folder.decisions import read_decisions
from tests.integration.client.conftest import processes_about, wait_until_gone

pytestmark = [
    pytest.mark.integration,
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="agents need Linux"),
]

SCRIPTS = {
    "count.py": """
from pathlib import Path

def run(mini_batch):
    return [f"{Path(path).name} {len(Path(path).read_text())}" for path in mini_batch]
""",
    "bad.py": """
def helper(path):
    raise ValueError("no\\x1b[2J good: " + path[-6:] + "\\x85\\u2028\\u2029")

def run(mini_batch):
    return [helper(path) for path in mini_batch]
""",
    "half.py": """
from pathlib import Path

def run(mini_batch):
    if Path(mini_batch[0]).name >= "04":
        raise ValueError("not mended yet")
    return [f"first {Path(path).name}" for path in mini_batch]
""",
    "stuck.py": """
import time
from pathlib import Path

def run(mini_batch):
    if Path(mini_batch[0]).name >= "04":
        time.sleep(600)
    return [f"first {Path(path).name}" for path in mini_batch]
""",
    "slow.py": """
import subprocess, time
from pathlib import Path

def run(mini_batch):
    subprocess.Popen(["sleep", "600"], start_new_session=True)
    Path("started").touch()
    time.sleep(600)
""",
}
JOB = """
name: words
code: src
entry_script: count.py
inputs: data
mini_batch_size: 2
append_row_file_name: words.txt
"""


@pytest.fixture
def job(tmp_path: Path) -> Path:
    """The folder of a job file; runs of the test write to `out` below it."""
    for name, text in SCRIPTS.items():
        (tmp_path / "src").mkdir(exist_ok=True)
        (tmp_path / "src" / name).write_text(text)
    (tmp_path / "data").mkdir()
    for number in range(10):
        (tmp_path / "data" / f"{number:02}.txt").write_text("x" * number)
    (tmp_path / "job.yml").write_text(JOB)
    return tmp_path


def start(job: Path, *options: str, **environment: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-P", "-m", "parallelrun", "run", "job.yml", "--output", "out", "--processes", "2"]
    return subprocess.Popen(
        [*command, *options],
        cwd=job,
        env={**os.environ, "TEST_IN": str(job / "out"), **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def run(job: Path, *options: str) -> tuple[int, str, list[str]]:
    command = start(job, *options)
    stdout, stderr = command.communicate(timeout=90)
    assert processes_about(job / "out") == {}
    return command.returncode, stdout, stderr.splitlines()


def until_it_runs(job: Path) -> None:
    """Wait until a worker is in the user's `run()`."""
    deadline = time.monotonic() + 60
    while not list(job.glob("out/.parallelrun/cluster/work/*/*/*/started")):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_job_leaves_its_output_and_its_logs(job: Path) -> None:
    code, stdout, stderr = run(job, "--nodes", "2")

    assert code == 0, stderr
    assert stdout == f"output: {job}/out/words.txt\nlogs: {job}/out/logs\n"
    assert (job / "out" / "words.txt").read_text() == "".join(f"{n:02}.txt {n}\n" for n in range(10))
    assert f"Output: {job}/out/words.txt, " in (job / "out" / "logs" / "job_result.txt").read_text()
    assert sorted(entry.name for entry in (job / "out").iterdir()) == ["logs", "words.txt"]
    assert any(line.startswith("completed in ") and "10 rows" in line for line in stderr)
    assert any("page, while the job runs: http" in line for line in stderr), "the address is gone with the run"

    code, stdout, stderr = run(job)
    assert (code, stdout) == (1, "")
    assert "--overwrite" in "\n".join(stderr)

    code, _, _ = run(job, "--overwrite", "--keep", "--set", "mini_batch_size=5")
    assert code == 0
    assert (job / "out" / ".parallelrun").is_dir()


def test_files_in_the_current_folder_are_nobody_elses_modules(job: Path) -> None:
    for name in ("redis.py", "httpx.py", "typing.py", "queue.py"):
        (job / name).write_text("raise SystemExit('not meant for you')")

    assert run(job)[0] == 0


def test_a_summary_only_job_has_no_output_line(job: Path) -> None:
    code, stdout, _ = run(job, "--set", "output_action=summary_only", "--set", "description='\u2028 pasted'")

    assert (code, stdout) == (0, f"logs: {job}/out/logs\n")


def test_an_output_that_nobody_has_written_has_no_line(job: Path) -> None:
    outputs = "{kept: {type: uri_file}, lost: {type: uri_file}}"
    command = "command: 'echo 1 > ${{outputs.kept}}', environment: azureml:NAME@latest"
    (job / "job.yml").write_text(f"{{type: command, {command}, outputs: {outputs}}}")

    code, stdout, stderr = run(job)

    assert (code, stdout) == (0, f"output kept: {job}/out/kept\nlogs: {job}/out/logs\n")
    assert any("has written nothing to its output 'lost'." in line for line in stderr), stderr


def test_a_failure_is_shown_with_the_users_own_traceback_and_keeps_everything(job: Path) -> None:
    code, stdout, stderr = run(job, "--set", "entry_script=bad.py", "--set", "error_threshold=0")

    assert (code, stdout) == (3, f"logs: {job}/out/logs\n")
    text = "\n".join(stderr)
    assert "ValueError: no\\x1b[2J good" in text
    assert "\x1b" not in text
    assert f'File "{job}/src/bad.py", line 3, in helper' in text
    log = next(line.removeprefix("log: ") for line in stderr if line.startswith("log: "))
    assert Path(log).exists()
    assert (job / "out" / ".parallelrun" / "cluster" / "data" / "jobs").is_dir()
    assert not (job / "out" / "words.txt").exists()

    assert run(job)[0] == 0  # what a failed run left is not in the way
    assert not (job / "out" / ".parallelrun").exists()


def test_a_run_goes_on_with_what_an_earlier_one_has_done(job: Path) -> None:
    code, _, stderr = run(job, "--set", "entry_script=half.py", "--set", "mini_batch_error_threshold=2")
    assert code == 3
    is_said = any(line.endswith(f"--resume-from {job}/out") for line in stderr)
    code, _, stderr = run(job, "--resume-from", "out")
    assert code == 1, "one folder can't be both"
    assert "name another folder" in "\n".join(stderr)
    code, _, stderr = run(job, "--output", "new", "--resume-from", "out")
    assert code == 0, stderr
    rows = (job / "new" / "words.txt").read_text().splitlines()
    assert [row.removeprefix("first ")[:6] for row in rows] == [f"{number:02}.txt" for number in range(10)]
    taken_over = sum(row.startswith("first") for row in rows) // 2
    assert is_said == (taken_over > 0)
    if is_said:
        assert f"5/5 mini-batches ({taken_over} taken over)" in "\n".join(stderr)
    assert sorted(entry.name for entry in (job / "new").iterdir()) == ["logs", "words.txt"]
    code, _, stderr = run(job, "--output", "newer", "--resume-from", "new")
    assert code == 1
    assert "holds no working data" in "\n".join(stderr)


@pytest.mark.parametrize("number, code", [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupt_cancels_the_job_and_leaves_nothing_running(job: Path, number: int, code: int) -> None:
    command = start(job, "--set", "entry_script=slow.py")
    until_it_runs(job)
    command.send_signal(number)
    stdout, stderr = command.communicate(timeout=60)

    assert (command.returncode, stdout) == (code, f"logs: {job}/out/logs\n")
    assert "canceled in" in stderr
    assert f"canceling the job; {'Ctrl-C' if code == 130 else 'SIGTERM'} again stops" in stderr
    assert "--resume-from" not in stderr
    assert processes_about(job / "out") == {}
    assert not (job / "out" / ".parallelrun").exists()


@pytest.mark.parametrize("how", ["interrupted", "interrupted twice", "killed"])
def test_what_was_done_when_a_run_was_broken_off_is_not_lost(job: Path, how: str) -> None:
    command = start(job, "--set", "entry_script=stuck.py")
    deadline = time.monotonic() + 60
    while not any(list(read_decisions(path)) for path in job.glob("out/.parallelrun/cluster/data/jobs/job_*")):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    _, printed = start(job, "--output", "new", "--resume-from", "out").communicate(timeout=30)
    assert "has not ended" in printed
    if how == "killed":
        command.kill()
    else:
        command.send_signal(signal.SIGINT)
        assert command.stderr is not None
        while how == "interrupted twice" and "canceling" not in command.stderr.readline():
            pass
        if how == "interrupted twice":
            command.send_signal(signal.SIGINT)
    _, printed = command.communicate(timeout=60)
    assert command.returncode == (-signal.SIGKILL if how == "killed" else 130)
    wait_until_gone(job / "out", within_s=30)
    assert how == "killed" or f"--resume-from {job}/out\n" in printed

    code, stdout, stderr = run(job)
    assert (code, stdout) == (1, "")
    text = "\n".join(stderr)
    assert re.search(rf"--output: {job}/out holds [0-9]+ mini-batch(es)? that an earlier run has finished", text), text
    assert f"--resume-from {job}/out" in text
    assert "--overwrite" in text

    code, _, stderr = run(job, "--output", "new", "--resume-from", "out")
    assert code == 0, stderr
    rows = (job / "new" / "words.txt").read_text().splitlines()
    assert [row.removeprefix("first ")[:6] for row in rows] == [f"{number:02}.txt" for number in range(10)]
    taken_over = sum(row.startswith("first") for row in rows) // 2
    assert taken_over
    assert f"5/5 mini-batches ({taken_over} taken over)" in "\n".join(stderr)

    if how == "interrupted":
        code, _, stderr = run(job, "--overwrite")
        assert code == 0, stderr
        assert sorted(entry.name for entry in (job / "out").iterdir()) == ["logs", "words.txt"]


def test_a_second_interrupt_ends_everything_at_once(job: Path) -> None:
    command = start(job, "--set", "entry_script=slow.py")
    until_it_runs(job)
    command.send_signal(signal.SIGINT)
    assert command.stderr is not None
    while "canceling" not in command.stderr.readline():
        pass
    command.send_signal(signal.SIGINT)
    command.communicate(timeout=20)

    assert command.returncode == 130
    assert processes_about(job / "out") == {}


def test_a_kill_leaves_nothing_running_and_the_next_run_clears_up(job: Path) -> None:
    command = start(job, "--set", "entry_script=slow.py")
    until_it_runs(job)
    command.kill()
    command.communicate(timeout=10)

    wait_until_gone(job / "out", within_s=30)
    assert run(job)[0] == 0
    assert sorted(entry.name for entry in (job / "out").iterdir()) == ["logs", "words.txt"]


def test_a_kill_of_all_processes_leaves_nothing_that_the_next_run_does_not_remove(job: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="pr-") as temporary:  # short, as a socket's path has to be
        command = start(job, "--set", "entry_script=slow.py", TMPDIR=temporary)
        until_it_runs(job)
        deadline = time.monotonic() + 30
        while pids := processes_about(Path(temporary)):
            assert time.monotonic() < deadline
            for pid in pids:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            command.poll()
        command.communicate()
        assert list(Path(temporary).glob("parallelrun-*"))

        command = start(job, TMPDIR=temporary)

        _, stderr = command.communicate(timeout=90)
        assert command.returncode == 0, stderr
        assert list(Path(temporary).glob("parallelrun-*")) == []


def test_services_that_die_are_restarted_and_the_job_completes(job: Path) -> None:
    (job / "src" / "count.py").write_text(
        f"import time\n{SCRIPTS['count.py']}".replace("return", "time.sleep(0.5)\n    return")
    )
    command = start(job, "--set", "mini_batch_size=1")
    deadline = time.monotonic() + 60
    killed = False
    while not killed:
        assert time.monotonic() < deadline
        for pid, line in processes_about(job / "out").items():
            if "parallelrun_api" in line and list(job.glob("out/.parallelrun/cluster/data/jobs/*/decisions.*")):
                os.kill(pid, signal.SIGKILL)
                killed = True
        time.sleep(0.02)
    _, stderr = command.communicate(timeout=90)

    assert command.returncode == 0, stderr
    assert "api was killed by SIGKILL; it is being restarted" in stderr
    assert (job / "out" / "words.txt").read_text().count("\n") == 10


def test_others_see_services_by_their_own_commands_and_no_setting_of_the_run(job: Path) -> None:
    command = start(job, "--set", "entry_script=slow.py", PARALLELRUN_SECRET_OF_TEST="not for all")
    until_it_runs(job)
    lines = {pid: line for pid, line in processes_about(job / "out").items() if "parallelrun_core.service" in line}
    variables = b"".join(Path(f"/proc/{pid}/environ").read_bytes() for pid in lines)
    command.kill()
    command.communicate(timeout=10)
    wait_until_gone(job / "out", within_s=30)

    shown = [re.sub(r"^.* -X marked-CLUSTER_OF_PARALLELRUN=\w{16} -P -m ", "", line) for line in lines.values()]
    for part in ("parallelrun_api.main --host", "parallelrun_agent.main --node node1"):  # their template may be gone
        assert [line.startswith(f"parallelrun_core.service.launch {part}") for line in shown].count(True) == 1, lines
    assert b"not for all" not in variables


def test_input_and_output_are_kept_apart(job: Path) -> None:
    code, _, stderr = run(job, "--output", "data/out")

    assert code == 1
    assert "part of the job's own input" in "\n".join(stderr)


def test_an_output_that_can_not_be_handed_over_is_not_lost(job: Path) -> None:
    (job / "src" / "count.py").write_text(
        f"import time\n{SCRIPTS['count.py']}".replace(
            "    return",
            "    Path('started').touch()\n"
            f"    while not Path({str(job / 'there')!r}).exists():\n"
            "        time.sleep(0.01)\n"
            "    return",
        )
    )
    command = start(job)
    until_it_runs(job)
    (job / "out" / "words.txt").write_text("somebody's")
    (job / "there").touch()
    stdout, stderr = command.communicate(timeout=60)

    assert (command.returncode, stdout) == (1, "")
    assert (job / "out" / "words.txt").read_text() == "somebody's"
    left = next(line.partition("the output is ")[2] for line in stderr.splitlines() if "the output is" in line)
    (job / "out" / "words.txt").unlink()

    code, _, again = run(job)

    assert code == 1
    assert "could not hand over" in "\n".join(again)
    assert Path(left).read_text().count("\n") == 10
