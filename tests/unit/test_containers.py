"""What the images and the compose file promise about safety, read from the files themselves."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
LOCKED = sorted(path.name for path in (ROOT / "requirements").glob("*.txt"))

ROLES = ("agent", "api", "concatenator", "master", "provisioner")
SERVICE_OF = {"agent": "agents"}
"""Where it isn't called as its role: `docker compose up --scale agents=3`."""
OF_STORES = "${PARALLELRUN_SECRETS:-secrets}:/secrets:ro"
"""The volume with credentials of datastores."""
each_service = pytest.mark.parametrize("name", sorted(SERVICES))
each_that_stays = pytest.mark.parametrize("name", sorted(SERVICES.keys() - {"keys"}))


@each_service
def test_a_service_can_gain_nothing_beyond_its_user(name: str) -> None:
    service = SERVICES[name]

    assert service["cap_drop"] == ["ALL"]
    assert "no-new-privileges:true" in service["security_opt"]
    assert service["read_only"] is True
    assert service["pids_limit"] > 0
    assert "privileged" not in service
    user = default_of(service["user"]).partition(":")[0]
    if name == "agents":  # it becomes another user at once, as does each worker
        assert user == "0"
        assert sorted(service["cap_add"]) == ["KILL", "SETGID", "SETUID"]
        assert service["environment"]["PARALLELRUN_RUN_AS"] == "10001:10001"
        assert default_of(service["environment"]["PARALLELRUN_WORKER_UIDS"]) == "20000-59999"
    else:
        assert user not in {"", "0", "root"}
        assert "cap_add" not in service


@each_that_stays
def test_a_service_is_watched_and_stopped_in_order(name: str) -> None:
    service = SERVICES[name]

    assert service["healthcheck"]["test"]
    assert service["init"] is True
    assert service["restart"] == "unless-stopped"
    assert service["stop_grace_period"]


@each_service
def test_no_service_sees_the_host(name: str) -> None:
    """Access to the engine's socket is as good as root on the host."""
    service = SERVICES[name]

    assert "docker.sock" not in str(service)
    for shared in ("pid", "ipc", "devices"):
        assert shared not in service
    assert service.get("network_mode", "none") == "none"
    bound = [volume for volume in service["volumes"] if isinstance(volume, dict)]
    assert all(volume["read_only"] for volume in bound)


def test_only_the_api_is_published_and_only_on_this_machine() -> None:
    published = {name: service["ports"] for name, service in SERVICES.items() if "ports" in service}

    assert list(published) == ["api"]
    assert all(port.startswith("127.0.0.1:") for port in published["api"])


def test_the_api_answers_to_its_own_names_only() -> None:
    """A page whose name was pointed at this machine is told by the Host header (DNS rebinding)."""
    environment = SERVICES["api"]["environment"]
    names = environment["PARALLELRUN_ALLOWED_HOSTS"].split(",")

    assert names == ["localhost", "127.0.0.1", "api", "${PARALLELRUN_HOSTS:-}"]


def test_the_token_is_on_a_volume_that_only_the_api_has() -> None:
    with_it = [name for name, service in SERVICES.items() if "state:/state" in map(str, service["volumes"])]

    assert with_it == ["api"]
    assert SERVICES["api"]["environment"]["XDG_STATE_HOME"] == "/state"
    assert "PARALLELRUN_TOKEN_FILE" not in SERVICES["api"]["environment"]
    assert re.search(r"mkdir [^\n]*/state.*chown 10001:10001 [^\n]*/state.*chmod 0700 /state", DOCKERFILE, re.DOTALL)


def test_named_tokens_are_where_only_the_api_reads_them() -> None:
    with_them = [name for name, service in SERVICES.items() if ":/tokens:" in str(service["volumes"])]

    assert with_them == ["api"]
    assert "${PARALLELRUN_TOKENS:-tokens}:/tokens:ro" in SERVICES["api"]["volumes"]
    assert SERVICES["api"]["environment"]["PARALLELRUN_TOKENS_FILE"] == "${PARALLELRUN_TOKENS:+/tokens/tokens}"
    assert SERVICES["api"]["environment"]["PARALLELRUN_OPERATORS"] == "${PARALLELRUN_OPERATORS:-}"


def test_jobs_may_not_name_what_the_services_keep() -> None:
    roots = SERVICES["api"]["environment"]["PARALLELRUN_ALLOWED_ROOTS"]

    assert roots == "${PARALLELRUN_ALLOWED_ROOTS:-/inputs:/outputs}"


def test_the_api_knows_that_jobs_are_users_of_their_own() -> None:
    """Or a job could name what its workers can't read."""
    assert SERVICES["agents"]["environment"]["PARALLELRUN_WORKER_UIDS"].startswith("${PARALLELRUN_WORKER_UIDS-")
    assert SERVICES["api"]["environment"]["PARALLELRUN_JOBS_APART"] == "true"


def test_who_reads_and_writes_data_has_the_folder_of_secrets_and_nobody_else() -> None:
    having = {name for name in SERVICES if OF_STORES in SERVICES[name].get("volumes", ())}

    assert having == {"master", "agents", "concatenator"}
    assert {name for name in SERVICES if "PARALLELRUN_SECRETS_DIR" in SERVICES[name].get("environment", ())} == having


def test_each_service_has_its_own_password_for_redis_and_redis_has_none() -> None:
    mounted = {
        name: [volume for volume in SERVICES[name]["volumes"] if "secret" in volume and volume != OF_STORES]
        for name in SERVICES
    }

    assert mounted["redis"] == []
    for role in ROLES:
        service = SERVICE_OF.get(role, role)
        assert mounted[service] == [f"secret-{role}:/secret:ro"]
        assert SERVICES[service]["environment"]["PARALLELRUN_REDIS_SECRET_FILE"] == "/secret/secret"
        assert f"secret-{role}:/keys/{role}" in mounted["keys"]
    assert "redis-users:/users:ro" in SERVICES["redis"]["volumes"]
    assert SERVICES["redis"]["depends_on"]["keys"]["condition"] == "service_completed_successfully"


def test_what_several_containers_mount_is_empty_in_the_image() -> None:
    mounts = [volume for service in SERVICES.values() for volume in service.get("volumes", ())]
    folders = re.findall(r"(?<=\s)/[a-z/]+", " ".join(re.findall(r"mkdir (.*?)&&", DOCKERFILE, re.DOTALL)))

    assert {"/data", "/secrets", "/keys/api"} <= set(folders)
    targets = {volume.removesuffix(":ro").rpartition(":")[2] for volume in mounts if isinstance(volume, str)}
    assert [(one, other) for one in targets for other in folders if other.startswith(f"{one}/")] == []


def test_redis_reaches_nothing_and_only_who_needs_it_reaches_it() -> None:
    networks = {name: set(service["networks"]) for name, service in SERVICES.items() if "networks" in service}

    assert COMPOSE["networks"]["queue"] == {"internal": True}
    assert networks["redis"] == {"queue"}
    assert SERVICES["keys"]["network_mode"] == "none"
    assert networks["api"] & networks["agents"] == {"queue"}
    assert {name for name, joined in networks.items() if "stores" in joined} == {"master", "concatenator"}


def test_redis_keeps_what_it_acknowledged() -> None:
    command = SERVICES["redis"]["command"]
    options = dict(zip(command[1::2], command[2::2], strict=True))

    assert options["--appendonly"] == "yes"
    assert options["--appendfsync"] == "everysec"
    assert options["--maxmemory-policy"] == "noeviction"


@each_service
def test_no_log_grows_without_a_limit(name: str) -> None:
    assert SERVICES[name]["logging"] == {"driver": "json-file", "options": {"max-size": "10m", "max-file": "3"}}


def test_what_is_not_the_users_own_code_has_a_limit_on_its_memory() -> None:
    limits = {name: in_mebibytes(default_of(service["mem_limit"])) for name, service in SERVICES.items()}
    command = SERVICES["redis"]["command"]
    of_data = in_mebibytes(default_of(command[command.index("--maxmemory") + 1]))

    assert limits.pop("agents") == 0  # none, unless it is set
    assert all(limit >= 256 for limit in limits.values())
    assert of_data < 0.75 * limits["redis"]


def in_mebibytes(text: str) -> int:
    number, unit = re.fullmatch(r"(\d+)([gm]?)b?", text).groups()  # type: ignore[union-attr]
    return int(number) * {"g": 1024, "m": 1, "": 0}[unit]


def test_the_audit_log_is_where_only_the_api_writes() -> None:
    path = SERVICES["api"]["environment"]["PARALLELRUN_AUDIT_LOG"]
    users = [
        name for name, service in SERVICES.items() if any(str(each).endswith(":/audit") for each in service["volumes"])
    ]

    assert path.startswith("/audit/")
    assert users == ["api"]
    assert "chown 10001:10001 /audit" in DOCKERFILE.partition(" AS control\n")[2]


def test_no_service_has_a_home_into_which_a_job_can_put_anything() -> None:
    [home] = re.findall(r"--home-dir (\S+)", DOCKERFILE)
    [made] = re.findall(rf"mkdir -p {home} .*? && chown 10001:10001 ([^&]*)", DOCKERFILE, re.DOTALL)

    assert home not in made.split()
    assert f"ENV HOME={home} " in DOCKERFILE
    for service in SERVICES.values():
        assert "HOME" not in service.get("environment", {})
        assert not any(home.startswith(place.partition(":")[0]) for place in service["tmpfs"])
        assert f":{home}" not in str(service["volumes"])


def test_agents_can_be_scaled_by_make_and_by_compose_alone() -> None:
    assert "--scale agents=$(AGENTS)" in (ROOT / "Makefile").read_text()
    assert "--remove-orphans" in (ROOT / "Makefile").read_text(), "the service had another name"
    assert not {"container_name", "ports", "hostname"} & set(SERVICES["agents"])
    assert SERVICES["agents"]["environment"]["PARALLELRUN_SLOTS"] is None  # the shell's, and none if that has none


def test_agents_keep_environments_on_disk_and_share_them() -> None:
    agent = SERVICES["agents"]
    variables = ("PARALLELRUN_CACHE_DIR", "UV_CACHE_DIR", "UV_PYTHON_INSTALL_DIR")

    assert "cache:/cache" in agent["volumes"]
    assert "cache" in COMPOSE["volumes"]
    assert all(f"{agent['environment'][name]}/".startswith("/cache/") for name in variables)
    # A new volume gets its owner from there.
    assert "chown 10001:10001 /cache" in DOCKERFILE.partition(" AS agent\n")[2]


def test_our_images_are_never_looked_up_in_a_registry() -> None:
    ours = {name: service for name, service in SERVICES.items() if name != "redis"}
    built = {service["image"]: service["build"]["target"] for service in ours.values() if "build" in service}

    assert built == {"parallelrun-agent": "agent", "parallelrun-control": "control"}
    for service in ours.values():
        assert service["image"] in built
        assert service["pull_policy"] == "never"


def test_the_images_build_with_any_builder_and_run_as_nobody() -> None:
    assert "# syntax" not in DOCKERFILE
    assert "--mount" not in DOCKERFILE
    for target in ("agent", "control"):
        stage = re.split(r"^FROM ", DOCKERFILE.partition(f" AS {target}\n")[2], flags=re.MULTILINE)[0]
        assert "USER 10001:10001" in stage


@pytest.mark.parametrize("name", LOCKED)
def test_what_is_installed_is_locked_by_hash_and_names_no_host(name: str) -> None:
    text = (ROOT / "requirements" / name).read_text(encoding="utf-8")
    logical_lines = text.replace("\\\n", " ").splitlines()

    assert "://" not in text
    assert all(re.match(r"[a-z0-9-]+==\S+ .*--hash=sha256:[0-9a-f]{64}", line) for line in logical_lines)


@pytest.mark.parametrize("extra", ["docker", "gpu", "otel", "stores", "tables"])
def test_images_have_what_each_extra_of_a_service_needs(extra: str) -> None:
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    locked = re.findall(
        r"^([a-z0-9-]+)==", (ROOT / "requirements/runtime.txt").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert {re.split(r"[^a-z0-9-]", each)[0] for each in wanted[extra]} - set(locked) == set()


def test_the_locked_files_agree() -> None:
    pinned: dict[str, set[str]] = {}
    for name in LOCKED:
        if name.startswith(("azure-client", "rivals")):  # of somebody else, each in an environment of its own
            continue
        for package, version in re.findall(
            r"^([a-z0-9-]+)==(\S+)", (ROOT / "requirements" / name).read_text(encoding="utf-8"), re.MULTILINE
        ):
            pinned.setdefault(package, set()).add(version)

    assert {package: versions for package, versions in pinned.items() if len(versions) > 1} == {}


def default_of(value: str) -> str:
    """What compose makes of `${NAME:-default}` and `${NAME-default}` when nothing is set."""
    return re.sub(r"\$\{\w+:?-([^}]*)\}", r"\1", value)


def test_nodes_of_computes_get_what_the_agents_of_this_file_have() -> None:
    settings = {
        name: default_of(str(value)).replace("${COMPOSE_PROJECT_NAME}_", "")
        for name, value in SERVICES["provisioner"]["environment"].items()
    }
    agent = SERVICES["agents"]
    seen = [volume for volume in agent["volumes"] if isinstance(volume, str)]

    assert SERVICES["provisioner"]["profiles"] == ["provisioner"]
    assert settings["PARALLELRUN_DOCKER_NETWORKS"].split(",") == ["queue", "outside"]
    assert set(agent["networks"]) == {"queue", "outside"}
    for target in ("/data", "/outputs", "/inputs", "/secrets"):
        assert f":{target}" in settings["PARALLELRUN_DOCKER_VOLUMES"]
    assert f"{settings['PARALLELRUN_DOCKER_REDIS_SECRET']}:/secret:ro" in seen
    assert f"{settings['PARALLELRUN_DOCKER_CACHE']}:/cache" in seen
    assert settings["PARALLELRUN_DOCKER_SECRETS_DIR"] == agent["environment"]["PARALLELRUN_SECRETS_DIR"]


def test_only_the_provisioner_reaches_an_engine() -> None:
    having = {name for name, service in SERVICES.items() if "engine" in service.get("networks", ())}

    assert having == {"provisioner"}
    assert {name for name, service in SERVICES.items() if "DOCKER_HOST" in service.get("environment", ())} == having


STACK: dict[str, Any] = yaml.safe_load((ROOT / "deploy" / "swarm" / "stack.yml").read_text(encoding="utf-8"))
each_of_the_stack = pytest.mark.parametrize("name", sorted(STACK["services"]))


@each_of_the_stack
def test_a_service_of_the_stack_can_gain_nothing_and_is_reached_from_no_machine(name: str) -> None:
    service = STACK["services"][name]

    assert service["cap_drop"] == ["ALL"]
    assert service["read_only"] is True
    assert service["user"].partition(":")[0] not in {"0", "root"}
    assert "docker.sock" not in str(service)
    assert "ports" not in service  # a swarm would open it on all machines
    assert service["deploy"]["endpoint_mode"] == "dnsrr"  # connections to Redis are idle for long


@each_of_the_stack
def test_a_service_of_the_stack_is_asked_where_it_answers(name: str) -> None:
    service = STACK["services"][name]
    port = service.get("environment", {}).get("PARALLELRUN_PORT") or "8081"

    assert name == "redis" or f"http://127.0.0.1:{port}/livez" in str(service["healthcheck"]["test"])


def test_nodes_of_the_stack_end_with_it() -> None:
    environment = STACK["services"]["provisioner"]["environment"]

    assert environment["PARALLELRUN_DOCKER_STACK"] == "parallelrun"
    networks = {STACK["networks"][name]["name"] for name in ("queue", "outside")}
    assert set(environment["PARALLELRUN_DOCKER_NETWORKS"].split(",")) == networks
    assert STACK["networks"]["queue"]["internal"] is True
