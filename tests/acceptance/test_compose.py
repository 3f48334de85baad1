"""The cluster of docker-compose.yml for real: what its containers may do, and nodes that come and go under a job."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.compose import Compose
from tests.acceptance.http_user import HttpUser, zip_of
from tests.acceptance.many import Many

pytestmark = [pytest.mark.acceptance, pytest.mark.docker, pytest.mark.slow, pytest.mark.timeout(3600)]

SERVICES = {"agents", "api", "concatenator", "master", "redis"}
_STOP_S = 60


@pytest.fixture
def user(compose: Compose) -> Iterator[HttpUser]:
    with compose.user() as user:
        yield user


def service_of(container: Any) -> str:
    return str(container.labels["com.docker.compose.service"])


def test_everything_is_there_and_healthy(compose: Compose, user: HttpUser) -> None:
    compose.wait_for_nodes(user, 3)
    found = compose.containers()

    assert sorted(map(service_of, found)) == sorted([*SERVICES, "agents", "agents"])
    assert {container.attrs["State"]["Health"]["Status"] for container in found} == {"healthy"}
    assert {container.attrs["RestartCount"] for container in found} == {0}


def test_only_the_api_can_be_reached_and_only_from_this_machine(compose: Compose) -> None:
    published = {
        service_of(container): binding["HostIp"]
        for container in compose.containers()
        for bindings in container.attrs["NetworkSettings"]["Ports"].values()
        for binding in bindings or ()
    }

    assert published == {"api": "127.0.0.1"}


def test_without_the_token_nobody_gets_in(user: HttpUser) -> None:
    user.client.headers["Authorization"] = "Bearer wrong"

    assert user.client.get("/v1/jobs").status_code == 401
    assert user.client.get("/readyz").status_code == 200


def test_only_its_own_names_are_answered(user: HttpUser) -> None:
    assert user.client.get("/v1/jobs", headers={"Host": "attacker.example"}).status_code == 421
    assert user.client.get("/v1/jobs", headers={"Host": "localhost"}).status_code == 200


def test_the_token_is_where_only_the_api_can_read_it(compose: Compose) -> None:
    for container in compose.containers():
        is_api = service_of(container) == "api"
        assert ("/state" in {mount["Destination"] for mount in container.attrs["Mounts"]}) == is_api
        inside(container, "test", "!", "-e", "/data/token")
    [api] = compose.containers("api")
    assert inside(api, "stat", "-c", "%a %u", "/state/parallelrun/token").split() == ["600", "10001"]


_AGENT = (
    "for p in /proc/[0-9]*; do grep -q '^Uid:.10001' $p/status && grep -q agent $p/cmdline && basename $p; done; true"
)


def test_a_container_can_do_no_more_than_its_work(compose: Compose) -> None:
    for container in compose.containers():
        service, host = service_of(container), container.attrs["HostConfig"]
        assert host["ReadonlyRootfs"], service
        assert host["CapDrop"] == ["ALL"], service
        added = {"CAP_KILL": 1 << 5, "CAP_SETGID": 1 << 6, "CAP_SETUID": 1 << 7} if service == "agents" else {}
        assert sorted(host["CapAdd"] or []) == sorted(added), service
        assert not host["Privileged"], service
        assert host["PidsLimit"] > 0, service
        assert {host["NetworkMode"], host["PidMode"], host["IpcMode"]}.isdisjoint({"host"}), service
        writable = {mount["Destination"] for mount in container.attrs["Mounts"] if mount["RW"]}
        own = {"agents": {"/cache"}, "api": {"/audit", "/state"}}.get(service, set())
        assert writable <= {"/data", "/outputs", *own}, service
        assert "docker.sock" not in str(container.attrs["Mounts"]), service

        # The same, from inside.
        pid = inside(container, "sh", "-c", _AGENT).strip() if service == "agents" else "1"
        status = dict(line.split(":\t", 1) for line in inside(container, "cat", f"/proc/{pid}/status").splitlines())
        assert "0" not in status["Uid"].split(), service
        assert "0" not in status["Gid"].split(), service
        rights = sum(added.values())
        assert {int(status[name], 16) for name in ("CapPrm", "CapEff", "CapBnd")} == {rights}, service
        assert {int(status[name], 16) for name in ("CapInh", "CapAmb")} == {0}, service
        assert status["NoNewPrivs"] == "1", service
        # Not even root could leave something behind.
        assert "Read-only file system" in inside(container, "touch", "/etc/passwd", user="0", code=1), service


def inside(container: Any, *command: str, user: str = "", code: int = 0) -> str:
    """What a command says that is run in a container."""
    ended, said = container.exec_run(list(command), user=user)
    assert ended == code, said
    return str(said.decode())


def test_paths_that_a_job_may_not_use_are_refused(compose: Compose, user: HttpUser) -> None:
    (compose.inputs / "one.txt").touch()
    code = zip_of({"entry.py": "def run(mini_batch): return mini_batch"})
    plain: dict[str, Any] = {"entry_script": "entry.py", "inputs": {"data": "/inputs"}}
    wrong: dict[str, dict[str, Any]] = {
        "/output": {**plain, "output": "/inputs/out"},
        "/inputs/data/path": {**plain, "inputs": {"data": "/etc"}},
    }
    before = user.client.get("/v1/jobs").json()

    for pointer, spec in wrong.items():
        answer = user.post(spec, code)
        assert answer.status_code == 422
        [error] = answer.json()["errors"]
        assert error["pointer"] == pointer
        assert re.search("Read-only file system|outside of the folders", error["message"])
    assert user.client.get("/v1/jobs").json() == before


WHO = """
import os
def run(mini_batch):
    with open(os.path.join(os.environ["AZUREML_BI_OUTPUT_PATH"], "mine.txt"), "w") as file:
        file.write("of the script")
    rights = [line.split()[1] for line in open("/proc/self/status") if line.startswith(("CapPrm", "CapEff"))]
    return [f"{os.getuid()} {os.getgid()} {rights}"]
"""


def test_workers_are_users_of_their_own_and_what_they_write_is_served(compose: Compose, user: HttpUser) -> None:
    (compose.inputs / "who.txt").touch()
    seen = set()
    for _ in range(2):
        job = user.submit({"entry_script": "entry.py", "inputs": {"i": "/inputs/who.txt"}}, zip_of({"entry.py": WHO}))
        name = Path(user.completed(job)["output"]["path"]).name
        uid, gid, rights = user.download(job, name).decode().strip().split(" ", 2)
        assert 20000 <= int(uid) <= 59999
        assert (gid, rights) == (uid, str(["0" * 16] * 2))
        assert user.download(job, "mine.txt") == b"of the script"
        seen.add(uid)
    assert len(seen) == 2


def test_nodes_come_and_go_in_the_middle_of_a_job(compose: Compose, user: HttpUser) -> None:
    compose.scale(user, 3)
    job = Many.submit(user, compose.inputs)
    job.until_worked(3)

    compose.scale(user, 1)
    compose.scale(user, 4)
    job.until_worked(6)
    assert job.until("nodes that leave in order lose nothing")["lost"] == 0

    victim = compose.containers("agents")[0]
    victim.kill("SIGKILL")
    job.until("the loss is seen", lost=1)
    compose.scale(user, 4)

    progress = job.finish()
    assert progress["retried"] == 0  # no try was charged for what nodes did


def test_redis_restarts_in_the_middle_of_a_job(compose: Compose, user: HttpUser) -> None:
    job = Many.submit(user, compose.inputs)
    before = job.until("the job is under way", done=100)["done"]

    compose.run("restart", "redis")

    job.until("it goes on", done=before + 100)
    assert job.finish()["retried"] == 0


def test_api_and_master_restart_in_the_middle_of_a_job(compose: Compose, user: HttpUser) -> None:
    job = Many.submit(user, compose.inputs)
    before = job.until("the job is under way", done=100)["done"]

    compose.run("restart", "api", "master", "concatenator")

    # The port is another one, since the tests leave it to the engine; the token is the same.
    with compose.user() as again:
        assert again.client.headers["Authorization"] == user.client.headers["Authorization"]
        job = replace(job, user=again)
        job.until("it goes on", done=before + 100)
        progress = job.finish()
    assert (progress["retried"], progress["lost"]) == (0, 0)


def test_an_agent_that_is_stopped_returns_its_work(compose: Compose, user: HttpUser) -> None:
    compose.scale(user, 2)
    job = Many.submit(user, compose.inputs)
    job.until_worked(2)
    leaving, staying = compose.containers("agents")

    leaving.stop(timeout=_STOP_S)

    leaving.reload()
    assert leaving.attrs["State"]["ExitCode"] == 0
    nodes = user.nodes()
    assert leaving.attrs["Config"]["Hostname"] not in nodes
    assert nodes[staying.attrs["Config"]["Hostname"]] == "ready"
    done = job.until("one node is left")["done"]
    job.until("it goes on", done=done + 20)
    assert job.finish()["lost"] == 0
