"""Common to both SDKs: inputs, outputs and environments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path, PurePath
from typing import Any, Final, Self

from parallelrun.errors import InvalidInput


def several(values: Iterable[Any] | None, pointer: str) -> list[Any]:
    """These values as a list; none for None.

    Args:
        pointer: what they are given as, for the error.

    Raises:
        InvalidInput: it is text or a path, whose characters nobody means, a set, which has no order, or a single value.
    """
    if values is None:
        return []
    if isinstance(values, str | bytes | PurePath | Mapping | set | frozenset) or not isinstance(values, Iterable):
        example = ", ".join(sorted(map(repr, values))) if isinstance(values, set | frozenset) else repr(values)
        raise InvalidInput.at(pointer, f"a list is required, and this is {type(values).__name__}", f"as in [{example}]")
    return list(values)


def without_none(fields: dict[str, Any]) -> dict[str, Any]:
    """A mapping without the fields that are not set."""
    return {name: value for name, value in fields.items() if value is not None}


def refuse(hint: str = "", /, **arguments: Any) -> None:
    """Refuse arguments that Azure ML's classes have, and that mean nothing here, where they have a value.

    Raises:
        InvalidInput: one has; what to do instead is the hint.
    """
    for name, value in arguments.items():
        if value:
            raise InvalidInput.at(f"/{name}", "it has no counterpart in ParallelRun", hint)


@dataclass
class Input:
    """Something that a job reads: a folder, a file, a table, or a value."""

    type: str | None = None
    """uri_folder, uri_file, mltable, or number, integer, string, boolean."""
    path: str | None = None
    mode: str | None = None
    name: str | None = None
    default: Any = None
    optional: bool | None = None
    description: str | None = None
    min: Any = None
    max: Any = None
    enum: list[Any] | None = None
    transformations: list[Any] | None = None
    """The steps of an MLTable, without an MLTable file."""
    hidden_files: str | None = None
    """skip or read: the files of a table whose names, or folders, begin with `_` or `.`."""
    litter_files: str | None = None
    """skip, warn or read: files that are known not to be data, such as `.DS_Store`."""
    on_mismatch: str | None = None
    """keep, null or error: what becomes of a value that doesn't fit its column of a text table."""

    def as_named_input(self, name: str) -> Self:
        """Return this input with this name."""
        return replace(self, name=name)

    def fields(self) -> dict[str, Any]:
        """The fields as in a job file."""
        return without_none({field.name: getattr(self, field.name) for field in fields(Input)})


@dataclass
class Output:
    """A folder or file that a job writes."""

    type: str | None = None
    path: str | None = None
    mode: str | None = None
    description: str | None = None
    name: str | None = None
    """The name under which Azure ML would register it; here it is noted, as `version` is."""
    version: str | None = None

    def fields(self) -> dict[str, Any]:
        """The fields as in a job file."""
        return without_none(asdict(self))


@dataclass
class BuildContext:
    """A Dockerfile, and the folder that it copies from."""

    path: str | None = None
    dockerfile_path: str | None = None
    """The Dockerfile in it; `Dockerfile` when not set."""


NOT_OF_JOBS: Final = frozenset({"version", "description", "environment_variables"})
"""The fields of an environment that are not of the job spec's."""


@dataclass
class Environment:
    """The Python of the workers: packages of a conda file or requirements; where the compute has nodes of images, the
    image of the nodes, or a Dockerfile for one.
    """

    name: str | None = None
    image: str | None = None
    conda_file: str | dict[str, Any] | None = None
    """The path of a conda file, or its content."""
    pip: list[str] | None = None
    index_url: str | None = None
    """The index that packages are taken from; that of the node when not set."""
    extra_index_urls: list[str] | None = None
    find_links: list[str] | None = None
    prereleases: bool | None = None
    version: str | None = None
    description: str | None = None
    environment_variables: dict[str, str] | None = None
    build: BuildContext | dict[str, Any] | None = None

    @classmethod
    def from_conda_specification(cls, name: str, file_path: str) -> Self:
        """The environment of a conda file."""
        return cls(name=name, conda_file=file_path)

    @classmethod
    def from_pip_requirements(cls, name: str, file_path: str) -> Self:
        """The environment of a requirements file.

        Raises:
            OSError: it can't be read.
        """
        lines = (line.strip() for line in Path(file_path).read_text(encoding="utf-8-sig").splitlines())
        return cls(name=name, pip=[line for line in lines if line and not line.startswith("#")])

    def document(self) -> Any:
        """The environment as in a job file. A name alone means the Python of the node."""
        fields = without_none(asdict(self))
        if "build" in fields:
            fields["build"] = without_none(fields["build"])
        is_built = any(name in fields for name in ("image", "build", "conda_file", "pip"))
        return fields if is_built else f"azureml:{self.name or 'environment'}@latest"
