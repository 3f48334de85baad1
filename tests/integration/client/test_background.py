"""`parallelrun up` and `down`: one cluster in the background, which all other commands find."""

import json
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from parallelrun.background.lock import is_locked
from parallelrun.background.state import BackgroundCluster, lock_file, requested_nodes_file, running, state_file
from parallelrun.embedded.kept_token import token_file
from parallelrun_core.service.state_folder import state_folder
from parallelrun_core.store.connection import RedisError, connect
from tests.integration.client.conftest import processes_about, wait_until_gone

pytestmark = [
    pytest.mark.integration,
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="agents need Linux"),
]


def parallelrun(*arguments: str) -> tuple[int, str, str]:
    # What other commands start may take a moment longer to end than the cluster.
    environment = {name: value for name, value in os.environ.items() if name != "TEST_IN" or arguments[0] == "up"}
    command = [sys.executable, "-P", "-m", "parallelrun", *arguments]
    done = subprocess.run(command, capture_output=True, check=False, text=True, timeout=90, env=environment)
    return done.returncode, done.stdout, done.stderr


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where the cluster of the test keeps its data; it is stopped in the end."""
    monkeypatch.setenv("TEST_IN", str(tmp_path / "home"))
    yield tmp_path / "home"
    parallelrun("down")
    wait_until_gone(tmp_path / "home", within_s=30)


def test_a_setting_that_a_service_refuses_ends_the_start_in_words(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARALLELRUN_KEEP_JOBS_DAYS", "a month")
    code, url, stderr = parallelrun("up", "--port", "0", "--processes", "1", "--root", str(home))
    assert (code == 0, url) == (False, "")
    assert "The service master keeps dying" in stderr
    assert "--keep-jobs-days: must be a number" in stderr

    monkeypatch.setenv("PARALLELRUN_KEEP_JOBS_DAYS", "30")
    code, _, stderr = parallelrun("up", "--port", "0", "--processes", "1", "--root", str(home))
    assert code == 0, stderr
    assert "keep_jobs_days=30 " in parallelrun("admin", "usage")[1]


def test_a_cluster_that_nobody_could_find_ends_and_says_why(home: Path) -> None:
    state_file().mkdir(parents=True)  # so it can't be written, as on a full disk
    code, url, stderr = parallelrun("up", "--port", "0", "--processes", "1", "--root", str(home))
    assert (code == 0, url) == (False, "")
    assert "The cluster didn't start: [Errno 21] Is a directory" in stderr
    assert processes_about(home) == {}
    log = (state_folder() / "cluster.log").read_text()
    assert "Traceback" not in log
    state_file().rmdir()


def test_a_cluster_stays_until_it_is_told_to_stop(home: Path, tmp_path: Path) -> None:
    code, url, stderr = parallelrun("up", "--port", "0", "--processes", "1", "--root", str(home))
    assert code == 0, stderr
    assert url.startswith("http://127.0.0.1:")
    assert "parallelrun job create" in stderr
    assert state_file().stat().st_mode & 0o777 == 0o600

    code, again, stderr = parallelrun("up", "--listen", "example.org")
    assert (code, again) == (0, url)
    assert "already running" in stderr
    assert "note: --listen: without effect" in stderr

    since = json.loads(state_file().read_text())["started"]
    code, _, stderr = parallelrun("up", "--nodes", "2")
    assert code == 0, stderr
    assert json.loads(state_file().read_text())["started"] == since
    assert "It has 2 nodes now, instead of 1." in stderr
    assert "without effect" not in stderr
    assert sorted(parallelrun("node", "list", "-o", "name")[1].split()) == ["node1", "node2"]
    code, _, stderr = parallelrun("up", "--nodes", "1")
    assert (code, "nodes are only added, and it has 2" in stderr) == (0, True), stderr

    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "count.py").write_text("def run(mini_batch):\n    return [len(mini_batch)]\n")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a.txt").touch()
    (tmp_path / "job.yml").write_text("code: src\nentry_script: count.py\ninputs: data\n")
    code, stdout, stderr = parallelrun("job", "create", "-f", str(tmp_path / "job.yml"), "--stream")
    job_id = stdout.strip()
    assert code == 0, stderr
    assert parallelrun("job", "download", job_id, "-p", str(tmp_path / "got"))[0] == 0
    assert (tmp_path / "got" / "parallel_run_step.txt").read_text() == "1\n"

    if shutil.which("openssl"):
        assert parallelrun("azure-env", "-o", "json")[0] == 0
        assert len(list((tmp_path / "state").glob("parallelrun/azure/*/front.json"))) == 1
    code, _, stderr = parallelrun("down")
    assert (code, stderr) == (0, "The cluster has stopped.\n")
    assert processes_about(home) == {}
    assert not list((tmp_path / "state").glob("parallelrun/azure/*/front.json")), "what azure-env has started goes, too"
    assert not state_file().exists()
    assert parallelrun("job", "list")[0] == 5
    assert parallelrun("down")[2] == "No cluster is running.\n"

    assert parallelrun("up", "--port", "0", "--processes", "1", "--root", str(home))[0] == 0
    assert json.loads(parallelrun("job", "show", job_id, "-o", "json")[1])["state"] == "completed"


def test_a_killed_background_process_leaves_nothing_and_can_be_replaced_at_once(home: Path) -> None:
    assert parallelrun("up", "--port", "0", "--processes", "1", "--root", str(home))[0] == 0
    cluster = running()
    assert cluster is not None
    os.kill(cluster.pid, signal.SIGKILL)

    code, _, stderr = parallelrun("up", "--port", "0", "--processes", "1", "--root", str(home))

    assert code == 0, stderr
    assert is_locked(lock_file())
    assert parallelrun("node", "list", "-o", "name")[1] == "node1\n"


def test_a_request_for_nodes_that_cannot_be_read_ends_no_cluster(home: Path) -> None:
    state_folder().mkdir(parents=True, exist_ok=True)
    requested_nodes_file().write_text("5")  # of an earlier cluster, which was killed
    assert parallelrun("up", "--port", "0", "--processes", "1", "--root", str(home))[0] == 0
    cluster, log = running(), state_folder() / "cluster.log"
    assert cluster is not None

    def refused(times: int) -> None:
        os.kill(cluster.pid, signal.SIGUSR1)
        deadline = time.monotonic() + 60
        while log.read_text().count("no nodes were added") < times:
            assert is_locked(lock_file()), log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.05)

    refused(1)
    requested_nodes_file().write_text("")
    refused(2)
    assert running() == cluster
    assert parallelrun("up", "--nodes", "2")[0] == 0
    assert sorted(parallelrun("node", "list", "-o", "name")[1].split()) == ["node1", "node2"]
    assert parallelrun("down")[0] == 0
    assert not requested_nodes_file().exists()


def test_a_browser_stays_signed_in_when_a_cluster_is_stopped_and_started_again(home: Path, tmp_path: Path) -> None:
    def up(port: str, root: Path) -> BackgroundCluster:
        code, _, stderr = parallelrun("up", "--port", port, "--processes", "1", "--root", str(root))
        assert code == 0, stderr
        cluster = running()
        assert cluster is not None
        return cluster

    first = up("0", home)
    signed_in = httpx.post(f"{first.url}/v1/session", json={"token": first.token}, trust_env=False)
    cookies = dict(signed_in.cookies)
    assert parallelrun("down")[0] == 0
    port = first.url.rpartition(":")[2]

    second = up(port, home)
    with httpx.Client(base_url=second.url, cookies=cookies, trust_env=False) as browser:
        assert browser.get("/v1/jobs").status_code == 200
    assert token_file(home).stat().st_mode & 0o777 == 0o600
    assert not any(second.token.encode() in path.read_bytes() for path in home.rglob("*") if path.is_file())
    assert parallelrun("down")[0] == 0

    other = up(port, tmp_path / "home" / "other")
    with httpx.Client(base_url=other.url, cookies=cookies, trust_env=False) as browser:
        assert browser.get("/v1/jobs").status_code == 401


def test_a_cluster_that_can_not_start_says_why(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REDIS_URL", "redis://:canary-secret@127.0.0.1:9/0")

    code, stdout, stderr = parallelrun("up", "--port", "0", "--root", str(home))

    assert (code, stdout) == (5, "")
    assert "The server at REDIS_URL (redis://:***@127.0.0.1:9/0) can't be used" in stderr
    assert not is_locked(lock_file())


@pytest.mark.skipif(not (shutil.which("redis-server") and shutil.which("openssl")), reason="needs a server with TLS")
def test_nodes_of_other_machines_come_by_tls_and_with_a_password(home: Path, tmp_path: Path) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{unused.getsockname()[1]}"
    code, _, stderr = parallelrun("up", "--port", "0", "--nodes", "0", "--listen", address, "--root", str(home))
    if "TLS" in stderr:
        pytest.skip("the redis-server here has no TLS")
    assert code == 0, stderr
    [command] = [line for line in stderr.splitlines() if line.startswith("add a node:")]
    words = shlex.split(command.removeprefix("add a node:"))

    with (tmp_path / "agent.log").open("wb") as log, subprocess.Popen(
        [sys.executable, "-P", "-m", "parallelrun_agent.main", *words[1:], "--node", "elsewhere",
         "--work-dir", str(tmp_path / "work")],
        stdout=log, stderr=log,
    ) as agent:  # fmt: skip
        deadline = time.monotonic() + 30
        while "elsewhere" not in parallelrun("node", "list", "-o", "name")[1]:
            assert agent.poll() is None, (tmp_path / "agent.log").read_text()
            assert time.monotonic() < deadline
        agent.terminate()

    url = words[words.index("--redis-url") + 1]
    with pytest.raises(RedisError, match=r"NOAUTH|Authentication|not ready"), connect(url) as nobody:
        nobody.ping()
    with pytest.raises(RedisError), connect(url.replace("rediss:", "redis:").partition("?")[0]) as plain:
        plain.ping()
