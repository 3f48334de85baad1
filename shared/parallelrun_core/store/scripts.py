"""Loads the Lua scripts that ship beside this module."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING

from parallelrun_core import failpoints

if TYPE_CHECKING:
    from redis import Redis
    from redis.commands.core import Script

_FENCE = "held == token"


def script(redis: Redis, name: str) -> Script:
    """The script `lua/<name>.lua`, bound to a connection; it is sent once and called by its hash from then on."""
    source = (files("parallelrun_core.store") / "lua" / f"{name}.lua").read_text()
    if name == "turn" and not failpoints.enabled("commit.fence"):
        assert _FENCE in source, "the failpoint no longer matches the script"  # noqa: S101 - sabotage must bite
        source = source.replace(_FENCE, "true")
    return redis.register_script(source)
