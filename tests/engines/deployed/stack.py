"""The stack on a Docker Swarm of one machine: all of it, with the commands of its page."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any, Final

import docker

from tests.acceptance import engine as docker_engine
from tests.acceptance.http_user import HttpUser
from tests.engines.deployed.install import OPERATOR, TOKENS
from tests.engines.deployed.tls import behind_tls, certificates
from tests.engines.images import with_environment, with_redis
from tests.engines.targets.docker import LABEL, ROOT, build

_NAME: Final = "parallelrun"
_FILES: Final = ("deploy/swarm/stack.yml", "deploy/swarm/tokens.yml")
_TAG: Final = "engine-test"
_BRIDGE: Final = "docker_gwbridge"
"""By which containers of a swarm reach their own machine, and this machine them."""
_USER: Final = 10001
_ASK_S: Final = 120
_READY_S: Final = 240


class Stack:
    """The stack and what it needs; made by `installed`."""

    name = "swarm"

    def __init__(self, client: docker.DockerClient, folder: Path, environment: dict[str, str]) -> None:
        self._client = client
        self._folder = folder
        self._environment = environment
        self._token = ""

    def prepare(self, certificates_in: Path) -> None:
        """Make all that has to be there before, as the page says it."""
        volume = f"{self._folder}/secrets:/secrets"
        self._run(
            "run", "--rm", "--volume", volume, "--user", str(_USER), f"parallelrun-control:{_TAG}", "python", "-m",
            "parallelrun_core.store.credentials", "/secrets", "--acl", "/secrets/users.acl",
        )  # fmt: skip
        kit = build("kit")
        self._run("run", "--rm", "--volume", f"{self._folder}/kit:/to", kit, "cp", "-a", "/opt/parallelrun/.", "/to")
        self._token = secrets.token_hex(24)
        given = {
            **{f"redis-{role.name}": (role / "secret").read_text()
               for role in (self._folder / "secrets").iterdir() if role.is_dir()},
            "users": (self._folder / "secrets" / "users.acl").read_text(),
            "token": self._token,
            "tokens": TOKENS,
            **{f"engine-{name}": (certificates_in / f"{name}.pem").read_text() for name in ("ca", "cert", "key")},
        }  # fmt: skip
        for name, text in given.items():
            self._client.secrets.create(name=f"{_NAME}-{name}", data=text.encode())
        for node in self._client.nodes.list():
            spec = node.attrs["Spec"]
            node.update({**spec, "Labels": {**spec.get("Labels", {}), "parallelrun.redis": "yes"}})

    def forget(self) -> None:
        """Remove what `prepare` has made."""
        for secret in self._client.secrets.list():
            if secret.name.startswith(f"{_NAME}-"):
                secret.remove()
        for volume in self._client.volumes.list(filters={"label": f"com.docker.stack.namespace={_NAME}"}):
            volume.remove(force=True)

    def deploy(self) -> None:
        """Deploy it, and wait until all is well."""
        files = [part for file in _FILES for part in ("--compose-file", file)]
        self._run("stack", "deploy", *files, _NAME)
        deadline = time.monotonic() + _READY_S
        while waiting := [name for name, is_well in self._tasks().items() if not is_well]:
            assert time.monotonic() < deadline, f"{waiting}\n{self._run('stack', 'ps', '--no-trunc', _NAME)}"
            time.sleep(0.5)  # a swarm gives no sign

    def _tasks(self) -> dict[str, bool]:
        """Each service, and whether its newest container runs and answers."""
        well = {}
        for service in self._client.services.list(filters={"label": f"com.docker.stack.namespace={_NAME}"}):
            tasks = self._client.api.tasks({"service": service.name, "desired-state": "running"})  # type: ignore[no-untyped-call]
            is_updating = (service.attrs.get("UpdateStatus") or {}).get("State") == "updating"
            # A task runs once its container has said that it is healthy. Just deployed, it may be the one of before.
            running = [_variables(task["Spec"]) for task in tasks if task["Status"]["State"] == "running"]
            well[service.name] = not is_updating and _variables(service.attrs["Spec"]["TaskTemplate"]) in running
        return well

    def user(self, token: str = "") -> HttpUser:
        """A user with this token, or with the one of the stack."""
        [container] = self._client.containers.list(
            filters={"label": f"com.docker.swarm.service.name={_NAME}_api", "health": "healthy"}
        )
        [address] = [
            each["IPv4Address"].partition("/")[0]
            for key, each in self._client.networks.get(_BRIDGE).attrs["Containers"].items()
            if key == container.id
        ]
        user = HttpUser(f"http://{address}:8080", token or self._token)
        user.client.headers["Host"] = "api"
        return user

    def document(self) -> dict[str, Any]:
        """A compute of this engine."""
        return {"type": self.name, "slots": 1, "idle_time_before_scale_down": 1, "stop_seconds": 10}

    def inputs(self, count: int) -> str:
        """A folder with that many inputs, as jobs name it."""
        for number in range(count):
            (self._folder / "inputs" / f"{number}.txt").write_text(f"{number}\n")
        return "/inputs"

    def nodes(self) -> list[str]:
        """The nodes that the engine has."""
        return [str(each.name) for each in self._client.services.list(filters={"label": LABEL})]

    def image(self) -> str:
        """As `Installation.image`."""
        return with_environment(self._client)

    def upgrade(self) -> None:
        """Deploy it again, with another name for the API."""
        self._environment["PARALLELRUN_HOSTS"] = "pr.example.org"
        self.deploy()

    def remove(self) -> None:
        """Remove it."""
        self._run("stack", "rm", _NAME)

    def left(self) -> list[str]:
        """What is there of the stack."""
        label = f"com.docker.stack.namespace={_NAME}"
        services = self._client.services.list(filters={"label": label})
        containers = self._client.containers.list(all=True, filters={"label": label}, ignore_removed=True)
        networks = self._client.networks.list(filters={"label": label})
        return [str(each.name) for kind in (services, containers, networks) for each in kind]

    def _run(self, *arguments: str) -> str:
        done = subprocess.run(
            ["docker", *arguments], cwd=ROOT, env=self._environment, capture_output=True, text=True, timeout=_ASK_S,
            check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"docker {arguments[0]}: {done.stdout[-1500:]}{done.stderr[-1500:]}"
        return done.stdout


def _variables(template: dict[str, Any]) -> list[str]:
    return list(template["ContainerSpec"].get("Env") or ())


@contextmanager
def installed() -> Iterator[Stack]:
    """Deploy the stack; at the end nothing is left of it."""
    with ExitStack() as stack:
        client = stack.enter_context(closing(docker_engine.reach()))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="pr-stack-")))
        folder.chmod(0o755)
        for name in ("data", "inputs", "outputs", "secrets", "kit"):
            (folder / name).mkdir()
            shutil.chown(folder / name, _USER, _USER)
        build("control")
        build("agent")
        address = client.networks.get(_BRIDGE).attrs["IPAM"]["Config"][0]["Gateway"]
        certificates(folder, address)
        path = os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock").removeprefix("unix://")
        port = stack.enter_context(behind_tls(path, address, folder))
        environment = {
            **os.environ,
            "PARALLELRUN_VERSION": _TAG,
            "PARALLELRUN_REDIS_IMAGE": with_redis(client),
            "PARALLELRUN_DOCKER_HOST": f"tcp://{address}:{port}",
            "PARALLELRUN_OPERATORS": OPERATOR,
            "PARALLELRUN_DOCKER_IMAGES": "parallelrun-with-*",
            **{f"PARALLELRUN_{name.upper()}": str(folder / name) for name in ("data", "inputs", "outputs", "kit")},
        }
        made = Stack(client, folder, environment)
        stack.callback(made.forget)
        made.prepare(folder)
        stack.callback(_gone, made)
        made.deploy()
        yield made


def _gone(made: Stack) -> None:
    """Remove it, if that has not happened, and wait until its secrets are free."""
    made.remove()
    deadline = time.monotonic() + _ASK_S
    while made.left() and time.monotonic() < deadline:
        time.sleep(0.2)  # a swarm gives no sign
