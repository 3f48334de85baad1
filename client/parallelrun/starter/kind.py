"""A kind of starter: a folder of ready files for one way to run, beside those that `plan` makes of answers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Final

from parallelrun.starter.texts import quoted, reading_step

_KINDS: Final = "parallelrun.starter.kinds"
_STAND_IN: Final = "src/stand_in.py"
LIMIT_FILE: Final = "limit.yml"


@dataclass(frozen=True, kw_only=True)
class StarterKind:
    """The facts of a kind that its files don't say."""

    sample: str
    """The sample's path in the folder, for a job that names no data of its own."""
    script: str
    """The path of the entry script in the folder."""
    read_step: str = ""
    """The read step of the sample, as YAML on one line; empty: the inputs are files."""
    has_stand_in: bool = False
    """True: the script can start a stand-in of the service, which is written beside it."""


def kind_named(name: str) -> StarterKind:
    """The kind with one of the `kinds.kind_names`."""
    kind: StarterKind = import_module(_module(name)).KIND
    return kind


def files_of_kind(kind_name: str, *, name: str, where: str = "") -> dict[str, str]:
    """The files to write, by their paths in the job's folder.

    Args:
        name: the job's name.
        where: the path or URL of the data, as the job file is to name it; empty: the kind's own sample is written.
    """
    kind = kind_named(kind_name)
    texts = dict(_texts(files(_module(kind_name))))
    texts["job.yml"] = texts["job.yml"].format(
        name=quoted(name),
        where=quoted(where or kind.sample),
        step=reading_step(where) if where else kind.read_step,
    )
    if where:
        texts = {path: text for path, text in texts.items() if not path.startswith("data/")}
    if kind.has_stand_in:
        texts[_STAND_IN] = files("parallelrun").joinpath("stand_in.py").read_text(encoding="utf-8")
    return texts


def _texts(folder: Traversable, prefix: str = "") -> Iterator[tuple[str, str]]:
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if entry.name in {"__init__.py", "__pycache__"}:
            continue
        if entry.is_dir():
            yield from _texts(entry, f"{prefix}{entry.name}/")
        else:
            yield prefix + entry.name, entry.read_text(encoding="utf-8")


def _module(kind_name: str) -> str:
    return f"{_KINDS}.{kind_name.replace('-', '_')}"
