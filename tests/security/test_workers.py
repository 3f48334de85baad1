"""A job's code is kept apart from the services and from other jobs, where a node can run workers as other users."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cluster import Cluster
from tests.security.as_user import command_for
from tests.security.attack import Attack
from tests.security.attacks.workers import ATTACKS
from tests.twins.sabotage import expect_failure

UIDS = "20000-59999"
OF_ANOTHER_USER = 64_125

needs_root = pytest.mark.skipif(os.getuid() != 0, reason="only root can run workers as other users")
pytestmark = pytest.mark.integration


@dataclass(frozen=True)
class Node:
    """A cluster without an API, whose jobs are put straight into the shared folder."""

    cluster: Cluster
    is_apart: bool
    name: str = "node"
    url: str = ""
    token: str = ""

    @property
    def root(self) -> str:
        return str(self.cluster.root)

    @property
    def inputs(self) -> Path:
        return self.cluster.home

    @property
    def inputs_there(self) -> str:
        return str(self.cluster.home)

    def rows_of(self, script: str, **settings: object) -> list[str]:
        """See `attack.Target`."""
        settings = {"inputs": self.cluster.files(1), "run_max_try": 1, **settings}
        result = self.cluster.result(self.cluster.submit(script, **settings))  # type: ignore[arg-type]
        return self.cluster.output(result) if result.output else []


@contextmanager
def node(*, without: str = "") -> Iterator[Node]:
    """A node whose workers are users of their own, and which is itself an ordinary user with three capabilities."""
    with Cluster(worker_uids=UIDS, without=without) as cluster:
        yield Node(cluster, is_apart=True)


@pytest.fixture(scope="module")
def apart() -> Iterator[Node]:
    with node() as target:
        yield target


def play(attack: Attack, target: Node) -> None:
    assert attack.play(target) == ""


@needs_root
@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_a_node_with_users_for_workers_holds(attack: Attack, apart: Node) -> None:
    play(attack, apart)


@needs_root
@pytest.mark.slow
def test_without_users_for_workers_each_of_these_attacks_gets_through() -> None:
    with node(without="worker.users") as target:
        for attack in ATTACKS:
            if attack.apart_only:
                with expect_failure():
                    play(attack, target)


HOW_IT_RUNS = """
import os
def run(mini_batch):
    status = dict(line.split(":\\t", 1) for line in open("/proc/self/status").read().splitlines())
    with open(os.path.join(os.environ["TMPDIR"], "x"), "w"), open(os.path.expanduser("~/x"), "w"):
        pass
    return ["|".join([status["Uid"], status["Gid"], status["Groups"].strip(), status["CapPrm"], status["CapEff"],
                      status["NoNewPrivs"]])] * len(mini_batch)
"""


@needs_root
def test_a_worker_has_one_user_one_group_and_no_rights(apart: Node) -> None:
    (row,) = apart.rows_of(HOW_IT_RUNS)
    users, groups, others, *rights = row.split("|")
    (uid,) = set(users.split())
    assert 20000 <= int(uid) <= 59999
    assert set(groups.split()) == {uid}
    assert others in ("", uid)
    assert rights == ["0" * 16, "0" * 16, "1"]


EVERYTHING = """
import os, sys, tempfile
def init():
    print("in the log")
def run(mini_batch):
    out = os.environ["AZUREML_BI_OUTPUT_PATH"]
    os.makedirs(os.path.join(out, "deeper"), exist_ok=True)
    with open(os.path.join(out, "deeper", "mine.txt"), "w") as file:
        file.write("of the script")
    with open("logs/of_the_script.txt", "a") as file:
        file.write("logged")
    with open("../logs/of_all.txt", "a") as file:
        file.write("logged")
    tempfile.NamedTemporaryFile(delete=False).close()
    if not os.path.exists("closed"):
        os.makedirs("closed/deeper")
        os.chmod("closed", 0)
    for path in mini_batch:
        open(path).close()
    if mini_batch[0].endswith("2.txt"):
        raise ValueError("of the script")
    return mini_batch
"""


@needs_root
def test_what_a_job_may_do_it_can_still_do(apart: Node) -> None:
    cluster = apart.cluster
    job = cluster.submit(
        EVERYTHING, inputs=cluster.files(4), mini_batch_size=1, max_concurrency_per_instance=1, run_max_try=1,
        profiling_module="cProfile", error_threshold=-1, environment_variables={"MINE": "1"},
    )  # fmt: skip
    result = cluster.result(job)
    folder = cluster.folder(job)
    assert result.state == "completed", result.failure
    assert len(cluster.output(result)) == 3
    assert (folder.outputs / "deeper" / "mine.txt").read_text() == "of the script"
    logs = folder.logs
    assert "in the log" in (logs / "user/stdout/node000/process000.stdout.txt").read_text()
    assert "init() is done" in (logs / "sys/node/node000/process000.txt").read_text()
    assert "run() failed" in (logs / "sys/error/node/node000/process000.txt").read_text()
    assert (logs / "sys/node/node000/process000.profile").stat().st_size
    assert (logs / "user/files/node000/process000/of_the_script.txt").read_text().startswith("logged")
    assert (logs / "user/files/node000/of_all.txt").read_text().startswith("logged")
    local = cluster.home / "work" / "node000"
    cluster.until(lambda: list(local.iterdir()) == [], "the agent has removed what the job's user left")


@needs_root
def test_long_mini_batches_and_copies_of_files_reach_workers_of_other_users(apart: Node) -> None:
    script = "def run(mini_batch):\n    return [f'{len(mini_batch)} {open(mini_batch[0]).read()}']\n"
    inputs = {"type": "uri_folder", "path": str(apart.cluster.files(2000)), "mode": "download"}
    assert apart.rows_of(script, inputs={"data": inputs}, mini_batch_size=2000) == ["2000 "]


@needs_root
def test_a_text_table_has_the_same_columns_on_all_workers_of_other_users(apart: Node) -> None:
    cluster = apart.cluster
    (cluster.home / "table.csv").write_text("number,text\n" + "12,a\n" * 4000)
    table = {"path": str(cluster.home / "table.csv"), "transformations": ["read_delimited"]}
    inputs: dict[str, object] = {"data": table}
    script = "def run(rows):\n    return [f'{dict(rows.dtypes.astype(str))}'] * len(rows)\n"
    result = cluster.result(job := cluster.submit(script, inputs=inputs, mini_batch_size="4kb"))
    assert result.state == "completed", result.failure
    (row,) = set(cluster.output(result))
    assert "int64" in row
    assert len(list(cluster.folder(job).layout.schemas)) == 1


PLANT = """
import os, time
def init():
    if not os.path.exists("../planted"):
        open("../planted", "x").close()
        logs = os.path.dirname(os.path.realpath("logs"))
        for number in range(1, 9):  # where the agent will make folders for the next workers
            for name in (f"../process{{number:03d}}", f"../.process{{number:03d}}", f"{{logs}}/process{{number:03d}}"):
                os.symlink({victim!r}, name)
def run(mini_batch):
    if os.getcwd().endswith("process000"):
        os.abort()
    return mini_batch
"""


def check_links(without: str = "") -> None:
    """Plant links where the agent works for a job's next workers."""
    with node(without=without) as target:
        victim = target.cluster.home / "of-the-services"
        victim.mkdir(mode=0o700)
        target.rows_of(PLANT.format(victim=str(victim)), max_concurrency_per_instance=1, run_max_try=2)
        assert list(victim.iterdir()) == [], "the agent has followed a link of the job's"
        assert victim.stat().st_gid == 0


@needs_root
def test_links_that_a_job_plants_lead_the_agent_nowhere() -> None:
    check_links()


@needs_root
@pytest.mark.slow
def test_without_acting_as_the_jobs_user_the_agent_follows_its_links() -> None:
    with expect_failure():
        check_links("worker.acting")


SECRET = "PARALLELRUN_REDIS_URL"
READ = """
import sys
try:
    print("read" if b"PARALLELRUN" in open(f"/proc/{sys.argv[1]}/environ", "rb").read() else "empty")
except OSError as error:
    print(error.strerror)
"""


def check_hidden(without: str = "") -> None:
    """Look into a service from another process of its user, who is not root."""
    uid = os.getuid() or OF_ANOTHER_USER

    def command(*words: str) -> list[str]:
        return command_for(uid, *words) if os.getuid() == 0 else list(words)

    launcher = ["tests.twins.launch", without] if without else ["parallelrun_core.service.launch"]
    root = Path(__file__).parents[2]
    service = subprocess.Popen(
        command(sys.executable, "-m", *launcher, "tests.security.idle_service"),
        cwd=root, env={**os.environ, SECRET: "redis://:secret@127.0.0.1"},
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    with service:
        assert service.stdout is not None
        assert service.stdout.readline() == "idle\n"
        reader = command(sys.executable, "-c", READ, str(service.pid))
        read = subprocess.run(reader, cwd="/", capture_output=True, text=True, check=True, timeout=30)
        assert read.stdout == "Permission denied\n"


def test_no_process_of_the_same_user_reads_the_environment_of_a_service() -> None:
    check_hidden()


def test_a_service_whose_memory_is_not_hidden_is_found() -> None:
    with expect_failure():
        check_hidden("service.hidden")


RUNS = "def run(mini_batch):\n    return ['as submitted']\n"


def check_damaged_code(without: str = "") -> None:
    """Alter the stored code of a job between its submission and its start on a node."""
    with Cluster(without=without) as cluster:
        cluster.processes["node000"].send_signal(19)
        job = cluster.submit(RUNS, inputs=cluster.files(1))
        stored = cluster.folder(job).code(cluster.folder(job).record()) / "entry.py"
        stored.chmod(0o644)
        stored.write_text("def run(mini_batch):\n    return ['poisoned']\n")
        cluster.processes["node000"].send_signal(18)
        result = cluster.result(job)
        assert not result.output, cluster.output(result)
        assert result.failure is not None
        assert result.failure.code == "CODE_DAMAGED"
        assert "entry.py was changed" in result.failure.first_cause


def test_code_that_was_altered_after_its_submission_is_never_run() -> None:
    check_damaged_code()


def test_a_node_that_runs_altered_code_is_found() -> None:
    with expect_failure():
        check_damaged_code("code.checked")


@pytest.mark.slow
def test_stored_code_that_is_used_again_unchecked_is_found() -> None:
    attack = next(each for each in ATTACKS if "same code again" in each.name)
    with expect_failure(), Cluster(without="code.checked") as cluster:
        from tests.twins.sabotage import without as sabotaged  # this process stores the code

        with sabotaged("code.checked"):
            play(attack, Node(cluster, is_apart=False))


def test_the_same_code_again_is_what_it_was_also_where_workers_are_the_agents_user() -> None:
    attack = next(each for each in ATTACKS if "same code again" in each.name)
    with Cluster() as cluster:
        play(attack, Node(cluster, is_apart=False))


@needs_root
@pytest.mark.parametrize(
    "rights,flags,words",
    [
        (["--bounding-set=-setuid"], ["--worker-uids", UIDS], "CAP_SETUID"),
        ([], ["--worker-uids", UIDS, "--work-dir", "{closed}/work"], "closed to user 20000"),
    ],
)
def test_a_node_that_cannot_have_users_for_workers_says_why_and_does_not_start(
    rights: list[str], flags: list[str], words: str, tmp_path: Path
) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    with Cluster(nodes=0) as cluster:
        command = [*(["setpriv", *rights, "--"] if rights else []), sys.executable, "-m", "parallelrun_agent.main"]
        flags = [flag.replace("{closed}", str(closed)) for flag in flags]
        done = subprocess.run(
            command_for(0, *command, "--node", "alone", "--work-dir", str(cluster.home / "alone"), *flags),
            env={
                **os.environ,
                "PARALLELRUN_REDIS_URL": cluster.redis_server.url,
                "PARALLELRUN_ROOT": str(cluster.root),
            },
            capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip
    assert done.returncode == 1
    assert words in done.stderr.splitlines()[-1]


@needs_root
def test_one_that_root_starts_keeps_three_capabilities_and_is_an_ordinary_user() -> None:
    uid = OF_ANOTHER_USER
    code = (
        "from parallelrun_agent.users.rights import become, check_and_restrict\n"
        f"become({uid}, {uid}); check_and_restrict()\n"
        "print(open('/proc/self/status').read())"
    )
    done = subprocess.run(command_for(0, sys.executable, "-c", code), capture_output=True, text=True, check=True)
    status = dict(line.split(":\t", 1) for line in done.stdout.strip().splitlines())
    assert status["Uid"].split() == [str(uid)] * 4
    assert status["Groups"].strip() in ("", str(uid))
    kill, setgid, setuid = 1 << 5, 1 << 6, 1 << 7
    assert int(status["CapEff"], 16) == int(status["CapPrm"], 16) == kill | setgid | setuid


def test_what_is_closed_to_others_says_so(tmp_path: Path) -> None:
    """A job's folder is nobody's but the services', from its beginning on."""
    with Cluster(nodes=0) as cluster:
        job = cluster.submit(RUNS, inputs=cluster.files(1))
        folder = cluster.folder(job)
        cluster.until(lambda: any(folder.path.glob("decisions.*")), "a leader has begun")
        modes = {path.name: path.stat().st_mode & 0o777 for path in folder.path.iterdir()}
        assert folder.path.stat().st_mode & 0o777 == 0o700
        assert folder.path.parent.stat().st_mode & 0o777 == 0o711
        private = {
            name: mode for name, mode in modes.items() if name.partition(".")[0] not in ("inputs", "outputs", "logs")
        }
        assert {name for name, mode in private.items() if mode & 0o077} == set()
        assert json.loads((folder.path / "job.json").read_text())["job_id"] == job
