"""Conda environments as requirements with packages of PyPI that are equivalent.

That approximates what conda would install: no package of conda's is. Most names that differ are in
`conda_pypi_names.toml`, which `make conda-names` writes from the table that conda's own developers keep; what that one
doesn't know is in `conda_packages.toml`. Every other package is taken to have the same name on PyPI.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

from parallelrun_core.spec.requirements import index_option, parse_requirement, requirement_lines

_PACKAGE: Final = re.compile(r"(?:[\w.\-/]+::)?(?P<name>\w[\w.\-]*)\s*(?P<version>[^\w\s\[].*)?")
_SPACED: Final = re.compile(r"(?P<package>\S*\w)\s+(?P<version>[0-9][\w.+!]*)(?P<star>\*?)(?:\s+[\w.*]+)?")
"""A package with its version, and perhaps a build, after spaces: `numpy 1.26`, which is `numpy==1.26`."""
_BRACKETS: Final = re.compile(r"\[(?=[vb])(?:version=(['\"])([<>=!~][^'\"]*)\1)?,?(?:build=[^,\[\]]+)?\]$")
"""A range, and perhaps a build, as `conda env export --from-history` writes them: `numpy[version='>=1.26,<2']`."""
_COMPARISON: Final = re.compile(r"(==|>=|<=|!=|~=|>|<|=)\s*([0-9]\w*(?:[.+!]\w+)*)((?:\.?\*)?)")
_BUILD: Final = re.compile(r"(?<=[\w.*])=[^=,<>!~|]+$")
"""The third part of name=version=build, which names a file of conda's."""
_ANY_VERSION: Final = frozenset({"*", "=*", "==*"})
OLDEST_MINOR: Final = 8
"""The workers need Python 3.8 or newer."""
_PYTHON: Final = re.compile(r"[0-9]+(\.[0-9]+){0,2}")
_NAMES_SHOWN: Final = 5


def python_of(conda: Mapping[str, Any]) -> str:
    """The version of Python that a conda environment asks for, as in `3.11` or `>=3.9,<3.12`; empty if none.

    Raises:
        ValueError: it can't be read.
    """
    for entry in _entries(conda):
        package = _package(entry) if isinstance(entry, str) else None
        if package is not None and package.name == "python":
            version = _specifier(package)
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
        ValueError: packages are not on PyPI, or an entry can't be read.
    """
    table = _packages()
    lines: list[str] = []
    only_conda: list[_Package] = []
    for entry in _entries(conda):
        match entry:
            case str():
                package = _package(entry)
                if package is None:
                    raise ValueError(f"{entry!r} is not a package of conda that can be read; {_how_to_write(entry)}")
                if table.is_only_in_conda(package.name):
                    only_conda.append(package)
                elif package.name not in table.not_needed:
                    lines.append(table.requirement(package))
            case {"pip": list() as requirements} if len(entry) == 1:
                lines += (parse_requirement(line).text for line in requirement_lines(requirements))
            case _:
                raise ValueError(f"{entry!r} is neither a package nor a list of requirements for pip")
    if only_conda:
        raise ValueError(_why_refused(only_conda))
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


class _Package(NamedTuple):
    """A package of conda as an entry names it."""

    name: str
    version: str
    """The comparisons as they are written; empty if any version will do."""


def _package(entry: str) -> _Package | None:
    """The package that an entry names; None: it names none."""
    text = _BRACKETS.sub(r"\2", entry.strip())
    if spaced := _SPACED.fullmatch(text):
        version = spaced["version"]
        text = spaced["package"] + (f"={version.rstrip('.')}" if spaced["star"] else f"=={version}")
    match = None if "://" in text else _PACKAGE.fullmatch(text)
    return _Package(match["name"].lower(), (match["version"] or "").strip()) if match else None


def _how_to_write(entry: str) -> str:
    if "[" in entry:
        return "write a version without brackets, as in numpy>=1.26, and what has extras under pip:"
    if "|" in entry:
        return "pip knows no alternatives (|): write one range, as in numpy>=1.2,<1.4"
    return "what only pip reads, as a URL, belongs under pip:"


def _why_refused(only_conda: list[_Package]) -> str:
    names = ", ".join(repr(package.name) for package in only_conda[:_NAMES_SHOWN])
    others = len(only_conda) - _NAMES_SHOWN
    if others > 0:
        names += f" and {others} more"
    subject = f"the conda package {names} is" if len(only_conda) == 1 else f"the conda packages {names} are"
    advice = "if one of PyPI's does the same, put it under pip:"
    if others > 0 or any(package.name.startswith("_") or _BUILD.search(package.version) for package in only_conda):
        advice = (
            "write the file with `conda env export --from-history`, without what conda itself has added, and copy the "
            f"part pip: into it; {advice}"
        )
    return f"{subject} not on PyPI; the environment is built with packages from there only: {advice}"


class _Packages(NamedTuple):
    """The two tables of what differs between conda and PyPI."""

    not_needed: frozenset[str]
    only_conda: tuple[str, ...]
    """Names, or forms of names with `*`; one of `pypi_names` is on PyPI nevertheless."""
    finer_on_pypi: frozenset[str]
    pypi_names: Mapping[str, str]

    def is_only_in_conda(self, name: str) -> bool:
        if name in self.pypi_names or name in self.not_needed:
            return False
        return any(fnmatchcase(name, form) for form in self.only_conda)

    def requirement(self, package: _Package) -> str:
        """The line of a requirements file that stands for a package."""
        name = self.pypi_names.get(package.name, package.name)
        return parse_requirement(name + _specifier(package, is_finer=name in self.finer_on_pypi)).text


@cache
def _packages() -> _Packages:
    packages, pypi_names = (
        tomllib.loads(Path(__file__).with_name(file).read_text(encoding="utf-8"))
        for file in ("conda_packages.toml", "conda_pypi_names.toml")
    )
    return _Packages(
        not_needed=frozenset(packages["not_needed"]),
        only_conda=tuple(packages["only_conda"]),
        finer_on_pypi=frozenset(packages["finer_on_pypi"]),
        pypi_names=pypi_names | packages["pypi_names"],
    )


def _specifier(package: _Package, *, is_finer: bool = False) -> str:
    """The version in pip's form: a single `=` stands for any version with this prefix, and with a build, as
    `conda env export` writes it, for this one; empty if any will do.

    Args:
        is_finer: PyPI numbers what is one release in conda with one part more.

    Raises:
        ValueError: a part of it can't be read, or pip has no form for it.
    """
    name, text = package
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
        can_be_prefix = version.replace(".", "").isdigit()  # pip knows no prefixes such as 2.0a0
        is_prefix = can_be_prefix and (is_finer or (sign == "=" and without_build == text))
        if sign[0] in "<>~":
            star, is_prefix = "", False  # to conda, `>=1.2.*` is `>=1.2`
        comparisons.append(f"{'==' if sign == '=' else sign}{version}{'.*' if star or is_prefix else ''}")
    return ",".join(comparisons)
