"""The interface of an engine: few, polled, repeatable calls, whose answers may lag behind."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Final, Protocol, runtime_checkable

from parallelrun_core.computes.launch import Launch
from parallelrun_core.untrusted.sanitize import in_one_line

KIT: Final = "/opt/parallelrun"
"""The folder of the agent that is brought along to nodes of images that aren't ours.
`deploy/kit/assemble.py` makes it for this place, and it must be there."""
# -I: nothing that an image sets for its own Python, by variables or files, has a say in the agent's.
PROGRAM: Final = (f"{KIT}/venv/bin/python", "-I", "-m", "parallelrun_agent.main")
_LOG_BYTES: Final = 2048


@dataclass(frozen=True, kw_only=True)
class EngineEnvironment:
    """The settings of the cluster that an engine starts nodes for."""

    cluster: str
    """Marks the engine's objects as those of this cluster: at most 40 letters, digits and '-'; never another one."""
    root: Path
    """The folder that all services share, as the provisioner sees it."""
    redis_url: str
    """Redis as the provisioner reaches it, without a secret."""
    agent_secret: str = field(default="", repr=False)
    """The password of agents on Redis; empty: they need none."""


class NodeStanding(StrEnum):
    """The state of an engine's object; Redis knows whether its agent works."""

    PENDING = "pending"
    """Accepted, and not running yet: waiting for room, for an image."""
    RUNNING = "running"
    ENDED = "ended"
    """Its process has ended, for whatever reason."""


@dataclass(frozen=True, kw_only=True)
class EngineNode:
    """An object of the engine that is a node of ours, in whatever state: found by our marks on it, never by address."""

    launch_id: str
    standing: NodeStanding
    image: str = ""
    """The image of the node's shape, by what the engine says; empty: the engine's own, or it can't say."""
    words: str = ""
    """The engine's own words on why it waits or has ended; empty: it has none."""
    exit_code: int | None = None
    ends_at: float | None = None
    """Time when the engine is going to end it, in seconds since the epoch, as by a limit on its time."""
    was_preempted: bool = False
    """True if the engine, not the node, wanted its end."""


@dataclass(frozen=True, kw_only=True)
class ImageState:
    """The state of an image that is built for jobs."""

    is_there: bool = False
    """True if nodes of it can be asked for."""
    said: str = ""
    """The step of the build that runs now, for people."""
    failure: str = ""
    """Why there will be none, in the engine's words; empty: nothing is known to speak against it."""
    failed_s: float = 0.0
    """Seconds since the build failed."""
    is_queued: bool = False
    """True if nothing is being done for it yet."""


class EngineError(Exception):
    """The engine doesn't answer, or not as expected; it may later. Its text is for people, without secrets."""


class LaunchRefused(EngineError):
    """The engine refuses this node: asking again in the same way will not help soon. Its text says why."""


class Engine(Protocol):
    """An engine, for one compute, made as `Engine(compute, engine_environment)`.

    Calls block, for seconds at most, and may come from one thread only.
    """

    def plan(self, launch: Launch) -> str:
        """Exactly what `launch` would send, as text for people: arguments, a script, a manifest. Asks nobody."""

    def launch(self, launch: Launch) -> None:
        """Ask for a node, and return without waiting for it. Again with the same id: nothing happens.

        Raises:
            LaunchRefused: no such node can be had.
            EngineError: it is unknown whether there is going to be one; `nodes` will tell.
        """

    def nodes(self) -> Sequence[EngineNode]:
        """All objects of this cluster and compute that the engine has, those that have ended included.

        Raises:
            EngineError: unknown.
        """

    def terminate(self, launch_ids: Collection[str]) -> None:
        """End these, if they are there, and remove what is left of them. Waiting for their end is not its task.

        A node that still runs gets SIGTERM first, and the time that the engine gives.

        Raises:
            EngineError: some may be there still; it is safe to ask again.
        """

    def close(self) -> None:
        """Free connections."""


@runtime_checkable
class BuildsImages(Protocol):
    """An engine that also builds images for jobs."""

    def build(self, jobs_by_image: Mapping[str, Collection[str]]) -> Mapping[str, ImageState]:
        """Go on with the images that jobs wait for, and break off what nobody waits for any more; returns at once.

        Args:
            jobs_by_image: by the name of an image (`core/names/computes.py`), the jobs that wait for it: they get its
            log.

        Returns:
            How it stands with each of them.

        Raises:
            EngineError: unknown.
        """


def end_of_log(path: Path) -> str:
    """The last words in the log of a node, for people; empty: there are none."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _LOG_BYTES))
            return in_one_line(file.read().decode(errors="replace"))[-500:]
    except OSError:
        return ""
