"""Control of a job as Redis has it: whether it is paused, and its priority."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

Priority = Literal["low", "normal", "high", "urgent"]
URGENT: Final = "urgent"
"""The priority that only admins give: such a job has a part of its own, beside those of all owners."""


class Orders(NamedTuple):
    """Orders of people about a job that has not ended."""

    is_paused: bool = False
    priority: str = ""
    """The priority that it was given since it was submitted; empty: none."""


NO_ORDERS: Final = Orders()
