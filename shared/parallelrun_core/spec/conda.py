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
from typing import Any, Final, NamedTuple

from parallelrun_core.spec.requirements import index_option, parse_requirement, requirement_lines

_PACKAGE: Final = re.compile(r"(?:[\w.\-/]+::)?(?P<name>\w[\w.\-]*)\s*(?P<version>[^\w\s\[].*)?")
_SPACED: Final = re.compile(r"(?P<package>\S*\w)\s+(?P<version>[0-9][\w.+!]*)(?P<star>\*?)(?:\s+[\w.*]+)?")
"""A package with its version, and perhaps a build, after spaces: `numpy 1.26`, which is `numpy==1.26`."""
_COMPARISON: Final = re.compile(r"(==|>=|<=|!=|~=|>|<|=)\s*([0-9]\w*(?:[.+!]\w+)*)((?:\.?\*)?)")
_BUILD: Final = re.compile(r"(?<=[\w.*])=[^=,<>!~|]+$")
"""The third part of name=version=build, which names a file of conda's."""
_ANY_VERSION: Final = frozenset({"*", "=*", "==*"})
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
        package = _package(entry) if isinstance(entry, str) else None
        if package is not None and package[0] == "python":
            version = _version(*package)
            plain = version.removeprefix("==").removesuffix(".*")
            return plain if _PYTHON.fullmatch(plain) else version
    return ""


def is_too_old(version: str) -> bool:
    """Return whether this version of Python is too old for the workers."""
    minor = _minor_of(version)
    return version == "2" or version.startswith("2.") or (minor is not None and minor < OLDEST_MINOR)


def may_be_newer(version: str) -> bool:
    """Return whether this may be a version of Python whose syntax the one that runs this can't parse: a newer one, one
    that can't be told, or Python 2."""
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


def _package(entry: str) -> tuple[str, str] | None:
    """The name and the version of a conda package, as written; None: it is none."""
    text = entry.strip()
    if spaced := _SPACED.fullmatch(text):
        version = spaced["version"]
        text = spaced["package"] + (f"={version.rstrip('.')}" if spaced["star"] else f"=={version}")
    match = None if "://" in text else _PACKAGE.fullmatch(text)
    return (match["name"].lower(), (match["version"] or "").strip()) if match else None


def _requirement(entry: str) -> list[str]:
    """The line of a requirements file that stands for a conda package; none for what no environment needs."""
    package = _package(entry)
    if package is None:
        hint = "what only pip reads, as a URL, belongs under pip:"
        if "[" in entry:
            hint = "write a version without brackets, as in numpy>=1.26, and what has extras under pip:"
        elif "|" in entry:
            hint = "pip knows no alternatives (|): write one range, as in numpy>=1.2,<1.4"
        raise ValueError(f"{entry!r} is not a package of conda that can be read; {hint}")
    name, version = package
    table = _packages()
    if name in table.not_needed or name == "python":
        return []
    if table.is_of_conda_only(name):
        raise ValueError(
            f"the conda package {name!r} is not on PyPI; the environment is built with packages from there only: if "
            "one of them does the same, put it under pip:"
        )
    return [parse_requirement(table.pypi_names.get(name, name) + _version(name, version)).text]


class _Packages(NamedTuple):
    """Names of packages that differ between conda and PyPI."""

    not_needed: frozenset[str]
    only_conda: frozenset[str]
    only_conda_prefixes: tuple[str, ...]
    on_pypi_despite_prefix: frozenset[str]
    pypi_names: Mapping[str, str]

    def is_of_conda_only(self, name: str) -> bool:
        has_prefix = name.startswith(self.only_conda_prefixes) and name not in self.on_pypi_despite_prefix
        return name in self.only_conda or has_prefix


@cache
def _packages() -> _Packages:
    table = tomllib.loads(Path(__file__).with_name("conda_packages.toml").read_text(encoding="utf-8"))
    return _Packages(
        not_needed=frozenset(table["not_needed"]),
        only_conda=frozenset(table["only_conda"]),
        only_conda_prefixes=tuple(table["only_conda_prefixes"]),
        on_pypi_despite_prefix=frozenset(table["on_pypi_despite_prefix"]),
        pypi_names=table["pypi_names"],
    )


def _version(name: str, text: str) -> str:
    """Conda's versions in pip's form: a single `=` stands for any version with this prefix, and with a build, as
    `conda env export` writes it, for this one; empty if any will do.

    Raises:
        ValueError: a part of it can't be read, or pip has no form for it.
    """
    if not text:
        return ""
    if "|" in text:
        hint = "write one range, as in >=1.2,<1.4"
        raise ValueError(f"the version {text!r} of {name!r} has alternatives (|), which pip does not know; {hint}")
    comparisons = []
    without_build = _BUILD.sub("", text)
    for part in without_build.split(","):
        if part.strip() in _ANY_VERSION:
            continue
        match = _COMPARISON.fullmatch(part.strip())
        if match is None:
            hint = "write comparisons with commas between them, as in >=1.2,<1.4"
            raise ValueError(f"the version {text!r} of {name!r} can't be read: {part.strip()!r}; {hint}")
        sign, version, star = match.groups()
        if sign == "=":
            is_prefix = star or (without_build == text and version.replace(".", "").isdigit())
            sign, star = "==", ".*" if is_prefix else ""  # pip knows no prefixes such as 2.0a0
        elif sign[0] in "<>~":
            star = ""  # to conda, `>=1.2.*` is `>=1.2`
        comparisons.append(f"{sign}{version}{'.*' if star else ''}")
    return ",".join(comparisons)
