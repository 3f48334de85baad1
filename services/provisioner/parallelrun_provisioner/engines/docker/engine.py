"""Launches, finds and ends the containers that are a compute's nodes."""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

from parallelrun_core.computes.kinds.docker import DockerCompute
from parallelrun_core.computes.launch import Launch
from parallelrun_provisioner.engines.docker.building import Builds
from parallelrun_provisioner.engines.docker.client import Connection, refusing, shortened, words_of
from parallelrun_provisioner.engines.docker.container import container
from parallelrun_provisioner.engines.docker.fetching import Fetches
from parallelrun_provisioner.engines.docker.kit import fill
from parallelrun_provisioner.engines.docker.node import CLUSTER, COMPUTE, IMAGE, LAUNCH
from parallelrun_provisioner.engines.docker.settings import DockerSettings
from parallelrun_provisioner.engines.image_settings import words
from parallelrun_provisioner.engines.interface import (
    EngineEnvironment,
    EngineError,
    EngineNode,
    ImageState,
    LaunchRefused,
    NodeStanding,
)

_STANDING: Final = {"running": NodeStanding.RUNNING, "paused": NodeStanding.RUNNING, "restarting": NodeStanding.PENDING}
_STARTED_WITHIN_S: Final = 30.0
"""After this, a container that was created and not started is one whose provisioner has died in between."""
_KILLED: Final = 137


class DockerEngine:
    """The nodes of one compute on the Engine that `DOCKER_HOST` names."""

    def __init__(
        self, compute: DockerCompute, engine_environment: EngineEnvironment, settings: DockerSettings | None = None
    ) -> None:
        self._compute = compute
        self._surroundings = engine_environment
        self._settings = settings or DockerSettings.from_environment()
        self._connection = Connection()
        self._fetches = Fetches(self._settings.login(compute.registry))
        self._builds = Builds(compute, self._settings, engine_environment)
        self._waiting: dict[str, tuple[Launch, str]] = {}
        """Launches whose image is on its way, by their ids."""
        self._kill_at: dict[str, float] = {}
        """When those that were told to stop are killed."""

    def plan(self, launch: Launch) -> str:
        """The container as the Engine's API has it, and the networks that it joins."""
        networks = words(self._settings.networks)[1:]
        sent = {"POST /containers/create?name=" + launch.id: self._container(launch)}
        joined = {f"POST /networks/{name}/connect": {"Container": launch.id} for name in networks}
        return json.dumps({**sent, **joined, f"POST /containers/{launch.id}/start": {}}, indent=2)

    def launch(self, launch: Launch) -> None:
        body = self._container(launch)
        if launch.id in self._waiting:
            return
        with self._connection.asking() as client:
            self._create(client, launch, body)

    def build(self, jobs_by_image: Mapping[str, Collection[str]]) -> Mapping[str, ImageState]:
        if not jobs_by_image:
            self._builds.close()
            return {}
        with self._connection.asking() as client:
            return self._builds.go_on(client, jobs_by_image)

    def _container(self, launch: Launch) -> dict[str, Any]:
        self._settings.check_secret(self._surroundings.agent_secret, "the volume")
        built = self._builds.tag(launch.shape.image)
        return container(self._compute, self._settings, self._surroundings.cluster, launch, built)

    def _create(self, client: Any, launch: Launch, body: dict[str, Any]) -> None:
        from docker.errors import APIError, ImageNotFound

        has_volume = bool(launch.shape.image) and not self._settings.is_kit_a_folder
        needed = [*([self._settings.kit] if has_volume else []), body["Image"]]
        try:
            for image in needed:
                client.inspect_image(image)
            if has_volume:
                fill(client, self._settings.kit)
            client.create_container_from_config(body, name=launch.id)
        except ImageNotFound as error:
            if image == self._builds.tag(launch.shape.image):  # never one of somebody's with that name
                self._builds.forget(launch.shape.image)
                raise EngineError("the image that was built for it is gone, and is built again") from error
            self._fetches.begin(image)
            self._waiting[launch.id] = launch, image
            return
        except APIError as error:
            if error.status_code != 409 or not self._is_ours(client.inspect_container(launch.id)):
                raise LaunchRefused(words_of(error)) from error
            if client.inspect_container(launch.id)["State"]["Status"] != "created":
                return
        try:
            with refusing():
                for network in words(self._settings.networks)[1:]:
                    client.connect_container_to_network(launch.id, network)
                client.start(launch.id)
        except LaunchRefused:
            with suppress(APIError):
                client.remove_container(launch.id, v=True, force=True)
            raise

    def _is_ours(self, container: dict[str, Any]) -> bool:
        """Return whether a container is a node of this cluster: another one may have the same name."""
        return bool((container["Config"]["Labels"] or {}).get(CLUSTER) == self._surroundings.cluster)

    def nodes(self) -> Sequence[EngineNode]:
        with self._connection.asking() as client:
            self._kill_overdue(client)
            containers = client.containers(all=True, filters={"label": self._marks()})
            nodes = [self._node(client, each) for each in containers]
            return [*nodes, *self._fetched(client)]

    def _marks(self) -> list[str]:
        return [f"{CLUSTER}={self._surroundings.cluster}", f"{COMPUTE}={self._compute.name}"]

    def _node(self, client: Any, listed: dict[str, Any]) -> EngineNode:
        launch_id, image = listed["Labels"][LAUNCH], listed["Labels"].get(IMAGE, "")
        standing = _STANDING.get(listed["State"])
        if standing is not None:
            return EngineNode(launch_id=launch_id, standing=standing, image=image)
        if listed["State"] == "created" and time.time() - listed["Created"] < _STARTED_WITHIN_S:
            return EngineNode(launch_id=launch_id, standing=NodeStanding.PENDING, image=image, words="created")
        return replace(_ended(client, launch_id, listed["Id"]), image=image)

    def _fetched(self, client: Any) -> Iterator[EngineNode]:
        """Yield the nodes that wait for their image; nodes whose image is there by now are launched."""
        for launch, image in list(self._waiting.values()):
            fetch = self._fetches.of(image)
            if fetch is None or fetch.ended_at is None:
                progress_words = f"fetching {image}: {fetch.said}" if fetch else ""
                yield EngineNode(
                    launch_id=launch.id, standing=NodeStanding.PENDING, image=launch.shape.image, words=progress_words
                )
                continue
            words = fetch.failure
            if not words:
                del self._waiting[launch.id]
                try:
                    self._create(client, launch, self._container(launch))
                except EngineError as error:
                    self._waiting[launch.id] = launch, image
                    words = str(error)
            standing = NodeStanding.ENDED if words else NodeStanding.PENDING
            yield EngineNode(launch_id=launch.id, standing=standing, image=launch.shape.image, words=words)

    def terminate(self, launch_ids: Collection[str]) -> None:
        from docker.errors import NotFound

        with self._connection.asking() as client:
            self._kill_overdue(client)
            for launch_id in launch_ids:
                self._waiting.pop(launch_id, None)
                with suppress(NotFound):
                    self._end(client, launch_id)

    def _end(self, client: Any, launch_id: str) -> None:
        container = client.inspect_container(launch_id)
        if not self._is_ours(container):
            return
        if not container["State"]["Running"]:
            client.remove_container(launch_id, v=True, force=True)
            self._kill_at.pop(launch_id, None)
        elif launch_id not in self._kill_at:
            if container["State"]["Paused"]:
                client.unpause(launch_id)
            client.kill(launch_id, signal="SIGTERM")
            self._kill_at[launch_id] = time.monotonic() + self._compute.stop_seconds

    def _kill_overdue(self, client: Any) -> None:
        from docker.errors import APIError

        for launch_id in [each for each, at in self._kill_at.items() if time.monotonic() >= at]:
            del self._kill_at[launch_id]
            with suppress(APIError):  # it has ended meanwhile
                client.kill(launch_id)

    def close(self) -> None:
        self._builds.close()
        self._connection.close()


def _ended(client: Any, launch_id: str, container_id: str) -> EngineNode:
    from docker.errors import NotFound

    try:
        state = client.inspect_container(container_id)["State"]
    except NotFound:
        return EngineNode(launch_id=launch_id, standing=NodeStanding.ENDED)
    code = int(state["ExitCode"])
    return EngineNode(
        launch_id=launch_id, standing=NodeStanding.ENDED, exit_code=code, words=_why(client, container_id, state, code)
    )


def _why(client: Any, container_id: str, state: dict[str, Any], code: int) -> str:
    """Why a container has ended, or was never started."""
    if state["Status"] == "created":
        return shortened(state["Error"] or "it was created and never started")
    if state["OOMKilled"]:
        return "it was killed, because it took more memory than it may"
    if state["Error"]:
        return shortened(state["Error"])
    if code == 0:
        return ""
    last = "" if code == _KILLED else client.logs(container_id, tail=1).decode(errors="replace")
    return shortened(f"exit code {code}: {last}" if last.strip() else f"exit code {code}")
