"""A launch of one node: its id, what it is, and how its agent is started."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from parallelrun_core.names.patterns import COMPUTE_NAME

_ID: Final = re.compile(rf"(?P<compute>{COMPUTE_NAME.strip('^$')})-(?P<digits>[0-9a-f]{{12}})")


@dataclass(frozen=True, kw_only=True)
class Shape:
    """The properties in which nodes of one compute may differ; nodes of the same shape do the same work."""

    image: str = ""
    """The image whose Python runs the workers; empty: the engine's own."""


@dataclass(frozen=True, kw_only=True)
class Launch:
    """A node that is asked for. Asking twice with the same id gives one node."""

    id: str
    """The node's name, and that of the engine's object: the compute's name and random digits."""
    compute: str
    shape: Shape = Shape()
    arguments: tuple[str, ...] = ()
    """Arguments of `parallelrun-agent`; no secrets, because engines show them."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Settings of the agent that are no secrets. Secrets are in files that the engine brings to the node."""


def launch_id(compute: str, digits: str) -> str:
    """The id of a launch, from 12 random hexadecimal digits."""
    return f"{compute}-{digits}"


def compute_of(launch: str) -> str:
    """The compute that a launch is for; empty: this is no launch's id."""
    match = _ID.fullmatch(launch)
    return match["compute"] if match else ""
