"""What a user's code can do to its worker, and that it does nothing to the agent, the node, or anybody else's work."""

from __future__ import annotations

import os
import re
import signal
import textwrap
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from parallelrun_core.folder.decisions import read_decisions
from parallelrun_core.wire.outcome import Outcome
from parallelrun_core.wire.states import JobState
from tests.cluster import Cluster

pytestmark = pytest.mark.integration

ENDED_WITHIN_S = 10.0
"""Far more than the two seconds that it takes: a machine may be busy with other tests."""

DAEMON = textwrap.dedent("""
    import os, subprocess, sys, time
    def note(pid):
        with open(os.environ["PIDS"], "a") as file:
            file.write(f"{pid}\\n")
    def daemon():
        # Twice away from the worker: a session of its own, and a parent that is gone.
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                note(os.getpid())
                time.sleep(1000)
            os._exit(0)
        os.wait()
""")

MISTAKES = DAEMON + textwrap.dedent("""
    import ctypes, signal, threading
    def run(mini_batch):
        number = int(os.path.basename(mini_batch[0])[5:12])
        rows = [str(number)]
        if number == 1:
            ctypes.string_at(0)
        if number == 2:
            os._exit(3)
        if number == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        if number == 4:
            for _ in range(200):
                pid = os.fork()
                if pid == 0:
                    if _ % 2:
                        os.setsid()
                    time.sleep(1000)
                    os._exit(0)
                note(pid)
            os.abort()
        if number == 5:
            for fd in range(3, 300):
                try:
                    if os.readlink(f"/proc/self/fd/{fd}").startswith("pipe:"):
                        os.write(fd, b"hello, whoever reads this " * 100)
                except OSError:
                    pass
            time.sleep(1000)
        if number == 6:
            os.closerange(3, 1000)
        if number == 7:
            sys.stdout.close()
            os.close(1)
        if number == 8:
            rows = [str(n) for n in range(1_000_000)]
        if number == 9:
            rows = ["x" * 100_000_000]
        if number == 10:
            sys.exit("enough")
        if number == 11:
            bytearray(1 << 62)
        if number == 12:
            daemon()
            os._exit(4)
        return rows
""")


def decisions_of(cluster: Cluster, job: str) -> dict[int, Outcome]:
    return {outcome.mini_batch: outcome for outcome in read_decisions(cluster.folder(job).path)}


def is_running(pid: str) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def stderr_of(cluster: Cluster, job: str) -> str:
    folder = cluster.folder(job).logs / "user" / "stderr"
    return "".join(path.read_text(errors="replace") for path in sorted(folder.rglob("*.txt")))


def test_whatever_run_does_costs_only_its_own_mini_batch_and_is_told_with_its_cause() -> None:
    with Cluster(slots=2) as cluster:
        pids = cluster.home / "pids"
        job = cluster.submit(
            MISTAKES,
            inputs=cluster.files(40),
            mini_batch_size=1,
            run_max_try=2,
            environment_variables={"PIDS": str(pids)},
        )
        result = cluster.result(job)
        assert result.state is JobState.COMPLETED, result.failure
        decisions = decisions_of(cluster, job)
        told = {
            number: (outcome.failure.category, outcome.failure.message)
            for number, outcome in decisions.items()
            if outcome.failure
        }
        expected = {
            1: ("SIGNAL", "SIGSEGV"), 2: ("EXITED", "code 3"), 3: ("SIGNAL", "at its peak"), 4: ("SIGNAL", "SIGABRT"),
            5: ("EXITED", "file descriptor"), 6: ("EXITED", ""), 10: ("RUN_EXCEPTION", "enough"),
            11: ("RUN_EXCEPTION", "MemoryError"), 12: ("EXITED", "code 4"),
        }  # fmt: skip
        assert told.keys() == expected.keys()
        for number, (category, words) in expected.items():
            assert told[number][0] == category, told[number]
            assert words in told[number][1], told[number]
        assert {outcome.tries for number, outcome in decisions.items() if number not in told} == {1}
        assert {outcome.tries for number, outcome in decisions.items() if number in told} == {2}
        output = cluster.output(result)
        assert len(output) == 40 - len(told) - 1 + 1_000_000
        assert max(map(len, output)) == 100_000_000
        left = pids.read_text().split()
        assert len(left) > 200  # those that were ended before they had written their number are gone, too
        assert not [pid for pid in left if is_running(pid)]
        assert "Fatal Python error: Segmentation fault" in stderr_of(cluster, job)
        assert cluster.processes["node000"].poll() is None


HANGS = DAEMON + textwrap.dedent("""
    import signal
    def run(mini_batch):
        if mini_batch[0].endswith("0000001.txt"):
            daemon()
        elif not os.path.exists(os.environ["GO"] + ".hung"):
            open(os.environ["GO"] + ".hung", "w").close()
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            daemon()
            time.sleep(1000)
        else:
            while not os.path.exists(os.environ["GO"]):
                time.sleep(0.02)
        return mini_batch
""")


def hang(cluster: Cluster) -> tuple[str, list[str], Path]:
    """Two mini-batches with a daemon each: one hangs, one is done. Returns once the first one's worker was ended.

    The job goes on when the file, which is the last thing answered, is there.
    """
    pids, go = cluster.home / "pids", cluster.home / "go"
    job = cluster.submit(
        HANGS,
        inputs=cluster.files(2),
        mini_batch_size=1,
        run_invocation_timeout=2,
        environment_variables={"PIDS": str(pids), "GO": str(go)},
    )
    cluster.until(lambda: pids.exists() and len(pids.read_text().split()) == 2, "both daemons run")
    cluster.until(lambda: cluster.logged("node000", "run_timeout") == 1, "the time is up")
    cluster.until(lambda: cluster.logged("node000", "worker_ended") == 1, "its worker is gone", ENDED_WITHIN_S)
    return job, pids.read_text().split(), go


def test_the_run_timeout_ends_daemons_of_its_worker_alone_and_shows_where_it_hung() -> None:
    with Cluster(slots=2) as cluster:
        job, both, go = hang(cluster)
        assert sum(map(is_running, both)) == 1, "its daemon must be gone, and that of the living worker not"
        go.touch()
        result = cluster.result(job)
        assert result.state is JobState.COMPLETED
        assert len(cluster.output(result)) == 2
        assert result.progress.retried == 1
        told = stderr_of(cluster, job)
        assert "run() took longer than 2 s" in told
        assert re.search(r'entry\.py", line \d+ in run', told)
        cluster.until(lambda: not any(map(is_running, both)), "a worker that ends in order takes its daemon along")


def test_without_the_end_of_orphans_the_same_daemon_lives_on() -> None:
    with Cluster(slots=2, without="worker.end_orphans") as cluster:
        job, both, go = hang(cluster)
        survivors = [pid for pid in both if is_running(pid)]
        go.touch()
        cluster.result(job)
        for pid in both:
            with suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
        assert len(survivors) == 2


# Orphans that end before their worker

LEAVES_MANY = textwrap.dedent("""
    import os, subprocess, time
    PIDS = os.environ["PIDS"]
    def init():
        with open(PIDS, "a") as file:
            file.write(f"{os.getpid()}\\n")
    def run(mini_batch):
        if mini_batch[0].endswith("00000.txt"):
            subprocess.run("for i in $(seq 300); do sleep 0.01 & done", shell=True, check=True)
        elif len(open(PIDS).readlines()) == 1:
            time.sleep(0.2)
        return [os.getpid()]
""")


def test_a_worker_that_has_gathered_many_ended_orphans_is_replaced() -> None:
    """It knows nothing of them, so it doesn't wait for them; in a container, process ids would run out."""
    with Cluster(slots=1) as cluster:
        pids = cluster.home / "pids"
        inputs = cluster.files(300)
        job = cluster.submit(LEAVES_MANY, inputs=inputs, mini_batch_size=1, environment_variables={"PIDS": str(pids)})
        result = cluster.result(job)
        assert result.state is JobState.COMPLETED, result.failure
        assert len(cluster.output(result)) == 300
        assert list(dict.fromkeys(cluster.output(result))) == pids.read_text().split()
        assert cluster.logged("node000", "worker_replaced") == 1
        assert not cluster.folder(job).logs.joinpath("user", "error.txt").exists()


# An agent that is killed

LEAVES_ONE = DAEMON + textwrap.dedent("""
    def run(mini_batch):
        daemon()
        while not os.path.exists(os.environ["GO"]):
            time.sleep(0.02)
        return mini_batch
""")


def kill_and_restart(cluster: Cluster) -> tuple[str, Path]:
    """An agent is killed while a daemon of its worker runs, and started again; the daemon's id, and what lets go."""
    pids, go = cluster.home / "pids", cluster.home / "go"
    cluster.submit(
        LEAVES_ONE,
        inputs=cluster.files(1),
        environment_variables={"PIDS": str(pids), "GO": str(go)},
    )
    cluster.until(lambda: pids.exists() and pids.read_text().endswith("\n"), "the daemon runs")
    (daemon,) = pids.read_text().split()
    cluster.kill("node000")
    assert is_running(daemon)
    cluster.start("node000")
    cluster.until(lambda: cluster.logged("node000", "worker_started") == 2, "the next agent works")
    return daemon, go


def test_the_next_agent_ends_what_a_killed_one_has_left_behind() -> None:
    with Cluster(slots=1, lease_s=1) as cluster:
        daemon, go = kill_and_restart(cluster)
        cluster.until(lambda: not is_running(daemon), "it is ended")
        assert cluster.logged("node000", "leftovers_ended") == 1
        go.touch()


def test_without_the_end_of_leftovers_they_live_on() -> None:
    with Cluster(slots=1, lease_s=1, without="worker.end_orphans") as cluster:
        daemon, go = kill_and_restart(cluster)
        assert is_running(daemon)
        os.kill(int(daemon), signal.SIGKILL)
        go.touch()


FLOOD = textwrap.dedent("""
    import os, subprocess, sys, time
    os.write(1, b"the first words\\n")
    def run(mini_batch):
        subprocess.run("yes | head -c 400000000", shell=True, check=True)
        sys.stderr.write("e" * 50_000_000)
        sys.stderr.flush()
        # What is said while the agent cuts may be cut: the last words come when it has.
        while max(os.fstat(1).st_size, os.fstat(sys.stderr.fileno()).st_size) > 100_000:
            time.sleep(0.01)
        open(os.environ["FLOODED"], "w").close()
        os.write(1, b"the last words\\n")
        sys.stderr.write("the last error\\n")
        return mini_batch
""")


def test_endless_output_fills_no_disk_holds_nobody_up_and_is_counted() -> None:
    with Cluster(slots=1, agent_flags=("--max-log-bytes", "100000")) as cluster:
        flooded = cluster.home / "flooded"
        job = cluster.submit(FLOOD, inputs=cluster.files(1), environment_variables={"FLOODED": str(flooded)})
        result = cluster.result(job)
        assert result.state is JobState.COMPLETED
        assert flooded.exists()
        logs = cluster.folder(job).logs
        (stdout,) = (logs / "sys" / "node").rglob("*.stdout.txt")
        cluster.until(lambda: "were dropped here" in stdout.read_text(), "the worker has ended")
        assert stdout.stat().st_size < 110_000
        text = stdout.read_text()
        assert text.startswith("the first words\n")
        assert text.endswith("the last words\n")
        (count,) = re.findall(r"\[parallelrun\] ([\d,]+) bytes were dropped here", text)
        assert 300_000_000 < int(count.replace(",", "")) <= 400_000_000
        (stderr,) = (logs / "user" / "stderr").rglob("*.txt")
        assert stderr.stat().st_size < 110_000
        assert stderr.read_text().endswith("the last error\n")


def test_an_init_that_hangs_fails_the_job_for_lack_of_progress_and_shows_where() -> None:
    script = "import time\ndef init():\n    time.sleep(1000)\ndef run(mini_batch):\n    return mini_batch\n"
    with Cluster() as cluster:
        job = cluster.submit(script, inputs=cluster.files(4), first_task_creation_timeout=3)
        result = cluster.result(job)
        assert result.state is JobState.FAILED
        assert result.failure is not None
        assert result.failure.code == "NO_PROGRESS"
        assert "init()" in result.failure.hint
        cluster.until(lambda: cluster.logged("node000", "worker_ended") >= 1, "the worker is gone")
        assert re.search(r'entry\.py", line 3 in init', stderr_of(cluster, job))


def test_a_shutdown_that_hangs_holds_the_job_up_for_no_longer_than_it_may() -> None:
    script = textwrap.dedent("""
        import sys, threading, time
        def run(mini_batch):
            threading.Thread(target=time.sleep, args=(1000,)).start()
            return mini_batch
        def shutdown():
            time.sleep(1000)
    """)
    with Cluster(agent_flags=("--shutdown-seconds", "1")) as cluster:
        job = cluster.submit(script, inputs=cluster.files(4), mini_batch_size=1)
        result = cluster.result(job, timeout_s=30)
        assert result.state is JobState.COMPLETED
        assert len(cluster.output(result)) == 4
        assert cluster.logged("node000", "shutdown_timeout") >= 1
        assert re.search(r'entry\.py", line \d+ in shutdown', stderr_of(cluster, job))


CUTS = textwrap.dedent("""
    import os
    def run(mini_batch):
        if mini_batch[0].endswith("0000003.txt"):
            # What closing and opening by number does to somebody else's descriptor.
            for fd in range(3, 300):
                try:
                    if "/parts/" in os.readlink(f"/proc/self/fd/{fd}"):
                        os.dup2(os.open("/dev/null", os.O_WRONLY), fd)
                except OSError:
                    pass
        return mini_batch
""")


@pytest.mark.parametrize("checked", [True, False], ids=["", "twin"])
def test_rows_that_never_reached_the_part_file_are_not_committed(checked: bool) -> None:
    with Cluster(slots=1, without="" if checked else "commit.check_rows") as cluster:
        job = cluster.submit(CUTS, inputs=cluster.files(8), mini_batch_size=1, run_max_try=2, look_ahead=False)
        result = cluster.result(job)
        if not checked:
            assert result.state is JobState.FAILED, "the damage is found when it is too late"
            return
        assert result.state is JobState.COMPLETED, result.failure
        failed = [outcome for outcome in decisions_of(cluster, job).values() if outcome.status == "failed"]
        assert [outcome.mini_batch for outcome in failed] == [3]
        assert "not in the worker's part file" in (failed[0].failure or pytest.fail("no cause")).message
        assert len(cluster.output(result)) == 7


@pytest.fixture
def small_memory() -> Iterator[Path]:
    """A cgroup of 200 MB inside our own, for whoever writes its process id into it."""
    line = next((each for each in Path("/proc/self/cgroup").read_text().splitlines() if ":memory:" in each), "0::/")
    _, controller, path = line.split(":", 2)
    version_1 = controller == "memory"
    parent = Path("/sys/fs/cgroup") / controller / path.lstrip("/")
    group = parent / f"parallelrun-test-{os.getpid()}"
    try:
        group.mkdir()
        (group / ("memory.limit_in_bytes" if version_1 else "memory.max")).write_text(str(200 << 20))
        yield group / "cgroup.procs"
    except OSError as error:
        pytest.skip(f"needs root and a memory cgroup: {error}")
    finally:
        if group.exists():
            group.rmdir()


def test_a_worker_that_is_killed_for_its_memory_is_told_as_such_and_its_agent_lives(small_memory: Path) -> None:
    script = textwrap.dedent("""
        def run(mini_batch):
            if mini_batch[0].endswith("0000001.txt"):
                hog = [bytearray(1 << 20) for _ in range(1 << 12)]
            return mini_batch
    """)
    with Cluster(slots=1) as cluster:
        cluster.kill("node000")
        cluster.start("node000")
        small_memory.write_text(str(cluster.processes["node000"].pid))  # before it has any worker
        job = cluster.submit(script, inputs=cluster.files(4), mini_batch_size=1, run_max_try=1)
        result = cluster.result(job)
        failure = decisions_of(cluster, job)[1].failure
        assert failure is not None
        assert failure.category == "OOM_KILLED"
        peak = re.search(r"It had (\d+) MiB at its peak", failure.message)
        assert peak is not None
        assert 50 < int(peak.group(1)) <= 200
        assert result.progress.done == 3
        assert cluster.processes["node000"].poll() is None


def test_a_script_that_removes_its_working_folder_harms_nobody() -> None:
    """Long lists of files wait for the worker in a file: not in a folder of the script's."""
    script = textwrap.dedent("""
        import os, shutil, time
        HERE = os.getcwd()
        def run(mini_batch):
            shutil.rmtree(HERE, ignore_errors=True)
            if mini_batch[0].endswith("-0001200"):
                time.sleep(1)  # what waits behind it is taken back
            return [os.path.basename(path)[-7:] for path in mini_batch]
    """)
    with Cluster(slots=1) as cluster:
        folder = cluster.home / "long"
        folder.mkdir()
        for number in range(4000):
            (folder / f"{'x' * 200}-{number:07d}").touch()
        job = cluster.submit(script, inputs=folder, mini_batch_size=400)
        result = cluster.result(job)
        assert result.state is JobState.COMPLETED, result.failure
        assert cluster.output(result) == [f"{number:07d}" for number in range(4000)]
        assert {outcome.tries for outcome in decisions_of(cluster, job).values()} == {1}
        assert cluster.processes["node000"].poll() is None
        assert not cluster.logged("node000", "disk_full")


ARGUMENTS = """
import argparse
def parse():
    argparse.ArgumentParser().parse_args()
{where}
"""


@pytest.mark.parametrize("where", [
    "def init(): parse()\ndef run(mini_batch): return mini_batch", "def run(mini_batch): parse()",
    "parse()\ndef run(mini_batch): return mini_batch",
])  # fmt: skip
def test_a_script_that_dies_of_arguments_of_others_is_told_the_remedy(where: str) -> None:
    with Cluster(nodes=1, slots=1) as cluster:
        script = ARGUMENTS.format(where=where)
        settings = {"run_max_try": 1, "program_arguments": "--mine 5"}
        result = cluster.result(cluster.submit(script, inputs=cluster.files(2), **settings))
        assert result.failure is not None
        assert "parse_known_args()" in result.failure.hint, result.failure
