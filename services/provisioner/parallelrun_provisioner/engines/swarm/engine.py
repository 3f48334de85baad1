"""Launches, finds and ends the services that are a compute's nodes."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

from parallelrun_core.computes.kinds.swarm import SwarmCompute
from parallelrun_core.computes.launch import Launch
from parallelrun_provisioner.engines.docker.client import Connection, post, shortened, words_of
from parallelrun_provisioner.engines.docker.fetching import read_login
from parallelrun_provisioner.engines.docker.node import CLUSTER, COMPUTE, IMAGE, LAUNCH
from parallelrun_provisioner.engines.docker.settings import DockerSettings
from parallelrun_provisioner.engines.interface import EngineEnvironment, EngineNode, LaunchRefused, NodeStanding
from parallelrun_provisioner.engines.swarm.service import service

_ENDED: Final = frozenset({"complete", "failed", "rejected", "shutdown", "orphaned", "remove"})
_TAKEN: Final = frozenset({"shutdown", "orphaned", "remove"})
"""How a task ends whose machine was drained, or is gone."""


class SwarmEngine:
    """The nodes of one compute on the swarm of which the Engine that `DOCKER_HOST` names is a manager."""

    def __init__(
        self, compute: SwarmCompute, engine_environment: EngineEnvironment, settings: DockerSettings | None = None
    ) -> None:
        self._compute = compute
        self._surroundings = engine_environment
        self._settings = settings or DockerSettings.from_environment()
        self._connection = Connection()

    def plan(self, launch: Launch) -> str:
        """The service as the Engine's API has it; the id of a secret is the swarm's to say."""
        return json.dumps({"POST /services/create": self._service(launch)}, indent=2)

    def launch(self, launch: Launch) -> None:
        from docker.errors import APIError

        body = self._service(launch)
        image = body["TaskTemplate"]["ContainerSpec"]["Image"]
        login = read_login(self._settings.login(self._compute.registry), image)
        with self._connection.asking() as client:
            if self._settings.redis_secret:
                body = self._service(launch, _secret_id(client, self._settings.redis_secret))
            headers = {"X-Registry-Auth": _header(login)} if login else {}
            try:
                # The library's own function knows only passwords of this user's own registries.
                post(client, "/services/create", body, headers)
            except APIError as error:
                if error.status_code != 409 or not self._is_ours(client, launch.id):
                    raise LaunchRefused(words_of(error)) from error

    def _service(self, launch: Launch, secret_id: str = "") -> dict[str, Any]:
        self._settings.check_secret(self._surroundings.agent_secret, "the swarm's secret")
        return service(self._compute, self._settings, self._surroundings.cluster, launch, secret_id)

    def nodes(self) -> Sequence[EngineNode]:
        with self._connection.asking() as client:
            services = client.services(filters={"label": f"{CLUSTER}={self._surroundings.cluster}"})
            ours = {each["ID"]: each["Spec"] for each in services}
            ours = {key: spec for key, spec in ours.items() if spec["Labels"].get(COMPUTE) == self._compute.name}
            tasks = client.tasks(filters={"label": f"{COMPUTE}={self._compute.name}"}) if ours else []
        newest: dict[str, dict[str, Any]] = {}
        for task in sorted(tasks, key=lambda each: str(each["CreatedAt"])):
            newest[task["ServiceID"]] = task
        return [
            replace(_node(spec["Labels"][LAUNCH], newest.get(key)), image=spec["Labels"].get(IMAGE, ""))
            for key, spec in ours.items()
        ]

    def terminate(self, launch_ids: Collection[str]) -> None:
        from docker.errors import NotFound

        with self._connection.asking() as client:
            for launch_id in launch_ids:
                with suppress(NotFound):
                    if self._is_ours(client, launch_id):
                        client.remove_service(launch_id)

    def _is_ours(self, client: Any, launch_id: str) -> bool:
        labels = client.inspect_service(launch_id)["Spec"]["Labels"]
        return bool(labels.get(CLUSTER) == self._surroundings.cluster)

    def close(self) -> None:
        self._connection.close()


def _header(login: dict[str, str]) -> str:
    from docker.auth import encode_header

    return str(encode_header(login), "ascii")


def _secret_id(client: Any, name: str) -> str:
    for secret in client.secrets(filters={"name": name}):
        if secret["Spec"]["Name"] == name:
            return str(secret["ID"])
    raise LaunchRefused(f"the swarm has no secret {name!r}, which PARALLELRUN_DOCKER_REDIS_SECRET names")


def _node(launch_id: str, task: dict[str, Any] | None) -> EngineNode:
    if task is None:
        return EngineNode(launch_id=launch_id, standing=NodeStanding.PENDING)
    status = task["Status"]
    words = shortened(status.get("Err") or status.get("Message") or status["State"])
    if status["State"] == "running":
        return EngineNode(launch_id=launch_id, standing=NodeStanding.RUNNING)
    if status["State"] not in _ENDED:
        return EngineNode(launch_id=launch_id, standing=NodeStanding.PENDING, words=words)
    code = status.get("ContainerStatus", {}).get("ExitCode")
    is_over = status["State"] == "complete"
    return EngineNode(
        launch_id=launch_id,
        standing=NodeStanding.ENDED,
        words="" if is_over else words,
        exit_code=code if is_over or code else None,
        was_preempted=status["State"] in _TAKEN,
    )
