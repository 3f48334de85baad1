"""The text of each Lua script, without the libraries of a client, which take long to import."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final

_FOLDER: Final = Path(__file__).with_name("lua")


@cache
def source(name: str) -> str:
    """The text of the script `lua/<name>.lua`."""
    return (_FOLDER / f"{name}.lua").read_text()


def read_all() -> None:
    """Read all scripts, in a process from which others are forked."""
    for path in _FOLDER.glob("*.lua"):
        source(path.stem)
