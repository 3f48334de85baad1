"""What a test needs of an engine beside the provisioner: to be there, and to kill nodes behind the provisioner's back.

The control plane is processes of this machine, whose folder and Redis the nodes see under the same names.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any, Final, Protocol, Self

PATIENCE_S: Final = 1800
"""How long to wait for what takes seconds, unless the machine is busy with other things."""


class Missing(Exception):
    """The engine can't be had here; the text says why."""


class Target(Protocol):
    """An engine that runs; made and entered by `targets.reach`."""

    name: str
    has_images: bool
    """Whether jobs may name `tests.engines.images` here, on nodes that share what they have built."""

    def __enter__(self) -> Self:
        """Make sure that the engine is there.

        Raises:
            Missing: it can't be had here.
        """

    def __exit__(self, *exc_info: object) -> None:
        """Remove what was made for the test. The engine itself stays, if it was there before."""

    def document(self) -> dict[str, Any]:
        """The definition of a compute, with a node that has one slot, without a name and without sizes."""

    def environment(self, seen: Collection[Path], secret: Path) -> dict[str, str]:
        """The settings with which a provisioner makes nodes.

        Args:
            seen: the folders of this machine that nodes see under the same names.
            secret: a folder with the agents' password for Redis in the file `secret`.
        """

    def left(self) -> list[str]:
        """The launch ids of all nodes of which anything is left at the engine."""

    def remove(self, launch_id: str) -> None:
        """Leave nothing of a node, for whatever reason it is still there."""

    def running(self) -> list[str]:
        """The launch ids of the nodes that the engine runs, of all clusters."""

    def kill(self, launch_id: str) -> None:
        """End a node at once, as when its machine dies; one that has ended meanwhile is none."""
