"""The text of each Lua script, without the libraries of a client, which take long to import."""

from __future__ import annotations

from pathlib import Path


def source(name: str) -> str:
    """The text of the script `lua/<name>.lua`."""
    return (Path(__file__).with_name("lua") / f"{name}.lua").read_text()
