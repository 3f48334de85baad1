"""What a Docker Engine is asked for: nodes that may do no more than the agents of docker-compose.yml."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from parallelrun_core.computes.kinds.docker import DockerCompute
from parallelrun_core.computes.kinds.swarm import SwarmCompute
from parallelrun_core.computes.launch import Launch, Shape, launch_id
from parallelrun_provisioner.engines.docker import DockerEngine
from parallelrun_provisioner.engines.docker.container import container
from parallelrun_provisioner.engines.docker.settings import DockerSettings
from parallelrun_provisioner.engines.interface import EngineEnvironment, LaunchRefused
from parallelrun_provisioner.engines.swarm.service import service

ROOT = Path(__file__).parents[3]
AGENT: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))["services"]["agents"]
SETTINGS = DockerSettings(
    networks="queue,outside",
    volumes="data:/data,/srv/in:/inputs:ro",
    redis_secret="secret-agent",
    images="team/*",
    kit="parallelrun-kit",
)
LAUNCH = Launch(
    id=launch_id("pool", "0123456789ab"),
    compute="pool",
    arguments=("--node", "pool-0123456789ab"),
    environment={"PARALLELRUN_ROOT": "/data"},
)
SURROUNDINGS = EngineEnvironment(cluster="c1", root=Path("/data"), redis_url="redis://redis:6379/0")


def docker(**fields: Any) -> DockerCompute:
    return DockerCompute.model_validate({"type": "docker", "name": "pool", **fields})


def swarm(**fields: Any) -> SwarmCompute:
    return SwarmCompute.model_validate({"type": "swarm", "name": "pool", **fields})


def test_a_container_may_do_no_more_than_the_agents_of_the_compose_file() -> None:
    body = container(docker(), SETTINGS, "c1", LAUNCH)
    host = body["HostConfig"]

    assert host["ReadonlyRootfs"] is AGENT["read_only"] is True
    assert host["CapDrop"] == AGENT["cap_drop"]
    assert sorted(host["CapAdd"]) == sorted(AGENT["cap_add"])
    assert host["SecurityOpt"] == AGENT["security_opt"]
    assert host["PidsLimit"] == AGENT["pids_limit"]
    assert host["Init"] is AGENT["init"] is True
    assert body["User"] == AGENT["user"]
    assert body["Entrypoint"] == AGENT["command"]
    assert "PARALLELRUN_RUN_AS=10001:10001" in body["Env"]
    assert "PARALLELRUN_WORKER_UIDS=20000-59999" in body["Env"]
    assert f"{body['StopTimeout']}s" == AGENT["stop_grace_period"]
    assert host["Tmpfs"] == {"/tmp": "size=2147483648,mode=1777,exec"}
    assert host["RestartPolicy"] == {"Name": "no"}
    assert "Privileged" not in host
    assert "PidMode" not in host


def test_a_service_may_do_as_little() -> None:
    spec = service(swarm(), SETTINGS, "c1", LAUNCH)["TaskTemplate"]["ContainerSpec"]

    assert spec["ReadOnly"] is True
    assert spec["CapabilityDrop"] == ["ALL"]
    assert sorted(spec["CapabilityAdd"]) == sorted(f"CAP_{name}" for name in AGENT["cap_add"])
    assert spec["Privileges"] == {"NoNewPrivileges": True}
    assert spec["User"] == "0:0"
    assert spec["StopGracePeriod"] == 60 * 10**9


def test_a_service_belongs_to_the_stack_that_is_removed_with_its_nodes() -> None:
    mark = "com.docker.stack.namespace"

    assert service(swarm(), SETTINGS.model_copy(update={"stack": "pr"}), "c1", LAUNCH)["Labels"][mark] == "pr"
    assert mark not in service(swarm(), SETTINGS, "c1", LAUNCH)["Labels"]


def test_a_service_is_never_started_again() -> None:
    body = service(swarm(constraints=["node.labels.tier==spot"]), SETTINGS, "c1", LAUNCH)

    assert body["TaskTemplate"]["RestartPolicy"] == {"Condition": "none"}
    assert body["Mode"] == {"Replicated": {"Replicas": 1}}
    assert body["TaskTemplate"]["Placement"] == {"Constraints": ["node.labels.tier==spot"]}


def test_the_operator_says_what_a_node_sees_and_the_password_is_a_file() -> None:
    body = container(docker(), SETTINGS, "c1", LAUNCH)

    seen = [(each["Type"], each["Source"], each["Target"], each["ReadOnly"]) for each in body["HostConfig"]["Mounts"]]
    assert seen == [
        ("volume", "data", "/data", False),
        ("bind", "/srv/in", "/inputs", True),
        ("volume", "secret-agent", "/secret", True),
    ]
    assert "PARALLELRUN_REDIS_SECRET_FILE=/secret/secret" in body["Env"]
    assert body["HostConfig"]["NetworkMode"] == "queue"


def test_the_password_of_redis_is_nowhere_in_a_plan() -> None:
    engine = DockerEngine(docker(), EngineEnvironment(**{**vars(SURROUNDINGS), "agent_secret": "swordfish"}), SETTINGS)

    plan = engine.plan(LAUNCH)

    assert "swordfish" not in plan
    assert list(json.loads(plan)) == [
        "POST /containers/create?name=pool-0123456789ab",
        "POST /networks/outside/connect",
        "POST /containers/pool-0123456789ab/start",
    ]


def test_agents_without_their_password_are_not_launched() -> None:
    settings = SETTINGS.model_copy(update={"redis_secret": ""})
    engine = DockerEngine(docker(), EngineEnvironment(**{**vars(SURROUNDINGS), "agent_secret": "swordfish"}), settings)

    with pytest.raises(LaunchRefused, match="PARALLELRUN_DOCKER_REDIS_SECRET"):
        engine.launch(LAUNCH)


@pytest.mark.parametrize("image, is_allowed", [("team/a:1", True), ("parallelrun-agent", True), ("other/a", False)])
def test_a_node_is_only_of_an_image_that_the_operator_allows(image: str, is_allowed: bool) -> None:
    launch = Launch(id=LAUNCH.id, compute="pool", shape=Shape(image=image))
    if is_allowed:
        assert container(docker(), SETTINGS, "c1", launch)["Image"] == image
    else:
        with pytest.raises(LaunchRefused, match="PARALLELRUN_DOCKER_IMAGES"):
            container(docker(), SETTINGS, "c1", launch)


def test_a_node_of_another_image_runs_our_agent_from_a_volume_that_it_can_not_change() -> None:
    launch = Launch(id=LAUNCH.id, compute="pool", shape=Shape(image="team/a:1"), arguments=("--node", "n"))
    body = container(docker(), SETTINGS, "c1", launch)
    kit = body["HostConfig"]["Mounts"][-2]

    assert body["Image"] == "team/a:1"
    assert body["Entrypoint"] == ["/opt/parallelrun/venv/bin/python", "-I", "-m", "parallelrun_agent.main"]
    assert (kit["Type"], kit["Target"], kit["ReadOnly"]) == ("volume", "/opt/parallelrun", True)
    assert kit["VolumeOptions"] == {"NoCopy": True}
    assert "PARALLELRUN_IMAGE=team/a:1" in body["Env"]


def test_without_an_agent_for_other_images_jobs_can_not_name_any() -> None:
    launch = Launch(id=LAUNCH.id, compute="pool", shape=Shape(image="team/a:1"))

    with pytest.raises(LaunchRefused, match="PARALLELRUN_DOCKER_KIT"):
        container(docker(), SETTINGS.model_copy(update={"kit": ""}), "c1", launch)


def test_in_a_swarm_the_agent_for_other_images_is_in_a_folder_of_all_machines() -> None:
    launch = Launch(id=LAUNCH.id, compute="pool", shape=Shape(image="team/a:1"))
    settings = SETTINGS.model_copy(update={"kit": "/shared/kit"})
    spec = service(swarm(), settings, "c1", launch)["TaskTemplate"]["ContainerSpec"]

    assert {"Type": "bind", "Source": "/shared/kit", "Target": "/opt/parallelrun", "ReadOnly": True} in spec["Mounts"]
    assert (spec["Image"], spec["Command"][0]) == ("team/a:1", "/opt/parallelrun/venv/bin/python")
    with pytest.raises(LaunchRefused, match="a folder of all machines"):
        service(swarm(), SETTINGS, "c1", launch)


def test_limits_are_those_of_the_compute() -> None:
    fields = {"cpus": 1.5, "memory_bytes": 1 << 30, "gpus": 2}
    host = container(docker(**fields), SETTINGS, "c1", LAUNCH)["HostConfig"]
    resources = service(swarm(**fields), SETTINGS, "c1", LAUNCH)["TaskTemplate"]["Resources"]

    assert (host["NanoCpus"], host["Memory"], host["MemorySwap"]) == (1_500_000_000, 1 << 30, 1 << 30)
    assert host["DeviceRequests"] == [{"Driver": "", "Count": 2, "Capabilities": [["gpu"]]}]
    assert resources["Limits"] == {"NanoCPUs": 1_500_000_000, "MemoryBytes": 1 << 30, "Pids": 4096}
    assert resources["Reservations"]["GenericResources"] == [
        {"DiscreteResourceSpec": {"Kind": "NVIDIA-GPU", "Value": 2}}
    ]


@pytest.mark.parametrize("fields, slots", [({}, ""), ({"cpus": 2.5}, "2"), ({"cpus": 0.5}, "1"), ({"slots": 3}, "3")])
def test_a_node_has_as_many_slots_as_cpus_that_it_may_use(fields: dict[str, Any], slots: str) -> None:
    env = container(docker(**fields), SETTINGS, "c1", LAUNCH)["Env"]

    assert [each for each in env if each.startswith("PARALLELRUN_SLOTS=")] == [f"PARALLELRUN_SLOTS={slots}"] * bool(
        slots
    )


@pytest.mark.parametrize(
    "fields",
    [
        {"image": "--privileged"},
        {"image": "a b"},
        {"registry": "../secret"},
        {"environment_variables": {"LD_PRELOAD": "/evil.so"}},
        {"environment_variables": {"PARALLELRUN_ROOT": "/"}},
        {"volumes": ["/:/host"]},
        {"networks": ["host"]},
        {"user": "0:0"},
    ],
)
def test_a_compute_can_not_reach_into_its_host(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        docker(**fields)


@pytest.mark.parametrize("text", ["data", "data:", "data:relative", "a:/b:rx", "a:/b:ro:z"])
def test_what_is_no_volume_is_refused_at_the_start(text: str) -> None:
    with pytest.raises(ValidationError, match="is no volume"):
        DockerSettings(volumes=text)


def test_a_registry_password_that_can_not_be_read_is_not_repeated(tmp_path: Path) -> None:
    (tmp_path / "ours").write_text('{"username": "u", "password": swordfish}')
    engine = DockerEngine(docker(registry="ours"), SURROUNDINGS, SETTINGS.model_copy(update={"registries": tmp_path}))

    with pytest.raises(LaunchRefused, match=r"can't be read from .*/ours") as refused:
        engine._fetches.begin("team/a:1")
    assert "swordfish" not in str(refused.value)
