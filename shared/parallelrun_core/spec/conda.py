"""Conda environments as requirements with packages of PyPI that are equivalent.

That approximates what conda would install: no package of conda's is. What differs by name is in `conda_packages.toml`;
every other package is taken to have the same name on PyPI.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

from parallelrun_core.spec.requirements import index_option, parse_requirement, requirement_lines

_PACKAGE: Final = re.compile(r"(?:[\w.\-/]+::)?(?P<name>[A-Za-z0-9][\w.\-]*)\s*(?P<version>[^\w\s\[].*)?")
_COMPARISON: Final = re.compile(r"(==|>=|<=|!=|~=|>|<|=)\s*([\w.*+!]+)")
OLDEST_MINOR: Final = 8
"""The workers need Python 3.8 or newer."""
_PYTHON: Final = re.compile(r"[0-9]+(\.[0-9]+){0,2}")
VARIABLE: Final = re.compile(r"\$\{\w+\}")
"""What installers replace by the value of an environment variable, which may be a password."""


def python_of(conda: Mapping[str, Any]) -> str:
    """The version of Python that a conda environment asks for, as in `3.11` or `>=3.9,<3.12`; empty if none.

    Raises:
        ValueError: it can't be read.
    """
    for entry in _entries(conda):
        match = _PACKAGE.fullmatch(entry.strip()) if isinstance(entry, str) else None
        if match is not None and match["name"].lower() == "python":
            version = _version("python", match["version"] or "")
            plain = version.removeprefix("==").removesuffix(".*")
            return plain if _PYTHON.fullmatch(plain) else version
    return ""


def is_too_old(version: str) -> bool:
    """Return whether this version of Python is too old for the workers."""
    minor = _minor_of(version)
    return version == "2" or version.startswith("2.") or (minor is not None and minor < OLDEST_MINOR)


def may_be_newer(version: str) -> bool:
    """Return whether this may mean a newer version of Python, with syntax of its own, than the one that runs this."""
    minor = _minor_of(version)
    return bool(version) if minor is None else minor > sys.version_info.minor


def _minor_of(version: str) -> int | None:
    """The second number of a version of Python 3; None: it is another text, such as a range."""
    match = re.match(r"3\.(\d+)", version) if _PYTHON.fullmatch(version) else None
    return int(match[1]) if match else None


def requirements_of(conda: Mapping[str, Any]) -> list[str]:
    """The packages of a conda environment, without Python itself, as lines of a requirements file, each made anew of
    what was read (`requirements.py`).

    Raises:
        ValueError: a package is not on PyPI, or an entry can't be read.
    """
    lines: list[str] = []
    for entry in _entries(conda):
        match entry:
            case str():
                lines += _requirement(entry)
            case {"pip": list() as requirements} if len(entry) == 1:
                lines += (parse_requirement(line).text for line in requirement_lines(requirements))
            case _:
                raise ValueError(f"{entry!r} is neither a package nor a list of requirements for pip")
    return lines


def without_options(conda: Mapping[str, Any]) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    """A conda environment without the options about indexes in its lines for pip, and the fields that stand for them.

    What is not as it should be is left as it is, for `requirements_of` to report.
    """
    options: list[tuple[str, str]] = []
    dependencies = conda.get("dependencies")
    if not isinstance(dependencies, list):
        return dict(conda), options
    entries: list[Any] = []
    for entry in dependencies:
        match entry:
            case {"pip": list() as lines} if len(entry) == 1:
                requirements, named = split_options(lines)
                options += named
                entries.append({"pip": requirements})
            case _:
                entries.append(entry)
    return {**conda, "dependencies": entries}, options


def split_options(lines: Iterable[object]) -> tuple[list[object], list[tuple[str, str]]]:
    """Lines of a requirements file: those of packages, and the fields of an environment that stand for the others."""
    pairs = [(line, index_option(line)) for line in requirement_lines(lines)]
    return [line for line, option in pairs if not option], [option for _, option in pairs if option]


def _entries(conda: Mapping[str, Any]) -> Iterator[Any]:
    dependencies = conda.get("dependencies") or []
    if not isinstance(dependencies, list):
        raise ValueError("dependencies must be a list")
    yield from dependencies


def _requirement(entry: str) -> list[str]:
    match = _PACKAGE.fullmatch(entry.strip())
    if match is None:
        raise ValueError(f"{entry!r} is not a package")
    name = match["name"].lower()
    table = _packages()
    if name in table["not_needed"] or name == "python":
        return []
    is_library = name.startswith(tuple(table["only_conda_prefixes"])) and name not in table["on_pypi_all_the_same"]
    if name in table["only_conda"] or is_library:
        raise ValueError(
            f"the conda package {name!r} is not on PyPI; the environment is built with packages from there only"
        )
    return [parse_requirement(table["pypi_names"].get(name, name) + _version(name, match["version"] or "")).text]


@cache
def _packages() -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_name("conda_packages.toml").read_text(encoding="utf-8"))


def _version(name: str, text: str) -> str:
    """Conda's versions in pip's form: a single `=` stands for any version with this prefix."""
    if not text.strip():
        return ""
    # The third part of name=version=build names a file of conda's.
    parts = _COMPARISON.findall(re.sub(r"^(=[^=,<>!~]+)=[^=].*$", r"\1", text.strip()))
    if not parts:
        raise ValueError(f"the version {text!r} of {name!r} can't be read")
    return ",".join(
        f"=={version.removesuffix('.*').removesuffix('*')}.*" if sign == "=" else f"{sign}{version}"
        for sign, version in parts
    )
