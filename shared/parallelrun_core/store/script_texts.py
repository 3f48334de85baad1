"""The text of each Lua script, without the libraries of a client, which take long to import."""

from __future__ import annotations

from importlib.resources import files


def source(name: str) -> str:
    """The text of the script `lua/<name>.lua`."""
    return (files("parallelrun_core.store") / "lua" / f"{name}.lua").read_text()
