"""The images that are built for the jobs of one compute: which are there, which are being built, which can't be."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from typing import Any, Final

from parallelrun_core.computes.containers import Containers
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.layout import Logs, code_store
from parallelrun_core.names.computes import BuiltImage, built_image_of
from parallelrun_provisioner.engines.docker.building.building import Building
from parallelrun_provisioner.engines.docker.building.sent import BUILT, parameters, tag_of
from parallelrun_provisioner.engines.docker.settings import DockerSettings
from parallelrun_provisioner.engines.interface import EngineEnvironment, ImageState

MOST_AT_ONCE: Final = 2
AGAIN_S: Final = 60.0
"""How long an image that could not be built is not tried again."""
_TRIES: Final = 3
"""How often a build may break off, as with an Engine that is started again, before that is its failure."""


class Builds:
    """The builds for the jobs of one compute. For one thread; none of its calls waits for a build."""

    def __init__(self, compute: Containers, settings: DockerSettings, engine_environment: EngineEnvironment) -> None:
        self._compute = compute
        self._settings = settings
        self._engine_env = engine_environment
        self._platform = ""
        self._tags: dict[str, str] = {}
        """Of those that are there, what the Engine calls them."""
        self._builds: dict[str, Building] = {}
        self._broken_off: dict[str, int] = {}

    def go_on(self, client: Any, jobs_by_image: Mapping[str, Collection[str]]) -> dict[str, ImageState]:
        """Start, follow and stop builds, as `BuildsImages.build` says. Raises the errors of the library."""
        for image in self._builds.keys() - jobs_by_image.keys():
            self._builds.pop(image).stop()
        self._broken_off = {image: count for image, count in self._broken_off.items() if image in jobs_by_image}
        return {image: self._state(client, image, jobs) for image, jobs in jobs_by_image.items()}

    def tag(self, image: str) -> str:
        """Return what the Engine calls an image; empty: it isn't built, as far as is known."""
        return self._tags.get(image, "")

    def forget(self, image: str) -> None:
        """The Engine has it no longer."""
        self._tags.pop(image, None)

    def close(self) -> None:
        """Break off what is being built."""
        for build in self._builds.values():
            build.stop()
        self._builds.clear()

    def _state(self, client: Any, image: str, jobs: Collection[str]) -> ImageState:
        built = built_image_of(image)
        if refusal := self._refusal(built):
            return ImageState(failure=refusal)
        assert built is not None  # noqa: S101 - for type checkers
        build = self._builds.get(image)
        may_be_there = build is None or (build.over_at is not None and not build.failure)
        if may_be_there and (self.tag(image) or self._is_there(client, image, built)):
            self._builds.pop(image, None)
            return ImageState(is_there=True)
        if build is None or self._may_begin_anew(image, build, jobs):
            if sum(each.over_at is None for each in self._builds.values()) >= MOST_AT_ONCE:
                return ImageState(said="waiting for the builds of other images", is_queued=True)
            build = self._builds[image] = self._begin(client, built, jobs)
        build.log.also_to(Logs(JobFolder(self._engine_env.root, job).logs).image_build for job in jobs)
        build.stop_if_late()
        if build.over_at is None:
            return ImageState(said=f"building its image: {build.said}")
        return self._ended(image, build)

    def _refusal(self, built: BuiltImage | None) -> str:
        if built is None:
            return "this is no name of an image that is built"
        if not self._settings.builds:
            return (
                "no images are built here: the operator of the provisioner allows it with "
                "PARALLELRUN_DOCKER_BUILDS=true"
            )
        if not self._settings.kit:
            return (
                "jobs can't bring images here: the operator of the provisioner names an image with the agent for them "
                "in PARALLELRUN_DOCKER_KIT"
            )
        return ""

    def _ended(self, image: str, build: Building) -> ImageState:
        over_s = _over_s(build)
        if build.failure:
            return ImageState(failure=build.failure, failed_s=over_s)
        trouble = build.trouble or "the Engine said nothing of its end"
        if self._has_failed(image, build):
            return ImageState(failure=f"its build broke off {_TRIES} times: {trouble}", failed_s=over_s)
        return ImageState(said=f"its build broke off, and is tried again: {trouble}")

    def _has_failed(self, image: str, build: Building) -> bool:
        return bool(build.failure) or self._broken_off.get(image, 0) + 1 >= _TRIES

    def _may_begin_anew(self, image: str, build: Building, jobs: Collection[str]) -> bool:
        is_new = build.is_new_for(jobs)
        if build.over_at is None:
            return False
        has_failed = self._has_failed(image, build)
        if _over_s(build) < AGAIN_S and not (is_new and has_failed):
            return False
        self._broken_off[image] = 0 if has_failed else self._broken_off.get(image, 0) + 1
        return True

    def _begin(self, client: Any, built: BuiltImage, jobs: Collection[str]) -> Building:
        tag = tag_of(built, self._platform_of(client))
        folder = code_store(self._engine_env.root) / built.context
        sent = parameters(built, tag, self._engine_env.cluster, self._compute, self._settings)
        return Building(folder, sent, jobs, self._settings.builds_on, limit_s=self._settings.build_seconds)

    def _is_there(self, client: Any, image: str, built: BuiltImage) -> bool:
        from docker.errors import ImageNotFound

        tag = tag_of(built, self._platform_of(client))
        try:
            labels = client.inspect_image(tag)["Config"]["Labels"] or {}
        except ImageNotFound:
            return False
        if labels.get(BUILT) != image:
            return False
        self._tags[image] = tag
        return True

    def _platform_of(self, client: Any) -> str:
        if not self._platform:
            version = client.version()
            self._platform = f"{version['Os']}/{version['Arch']}"
        return self._platform


def _over_s(build: Building) -> float:
    return 0.0 if build.over_at is None else time.monotonic() - build.over_at
