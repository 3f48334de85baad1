"""Conda environments as requirements with packages of PyPI that are equivalent.

That approximates what conda would install: no package of conda's is. Most names that differ are in
`conda_pypi_names.toml`, which `make conda-names` writes from the table that conda's own developers keep; what that one
doesn't know is in `conda_packages.toml`. Every other package is taken to have the same name on PyPI.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import translate
from functools import cache
from pathlib import Path
from typing import Any, Final

from parallelrun_core.problems import did_you_mean
from parallelrun_core.spec.python_versions import PLAIN_VERSION
from parallelrun_core.spec.requirements import check_no_user, index_option, parse_requirement, requirement_lines

_KEYS: Final = frozenset({"name", "channels", "dependencies", "prefix", "platforms", "category"})
"""Of a conda environment. All but `dependencies` say where conda would take packages from, and where it puts them."""
_CHANNEL: Final = re.compile(r"(?:(?:\w+://)?[\w./:-]+(?:\[[\w-]+\])?::)?", re.ASCII)
"""As in `conda-forge::`, `conda-forge[linux-64]::` or `https://HOST/PATH::`."""
_PART: Final = r"(?:[=<>!~]+\s*+)?[^\s=<>!~,|\[\]][^\s=<>~,|\[\]]*+"
"""A comparison, as in `>=1.26` or `1.26.*`."""
_PAIR: Final = r"""(\w++)\s*+=\s*+('[^']*+'|"[^"]*+"|[^\s,'"\[\]]++)\s*+"""
"""As in `build='py311*'`."""
_ENTRY: Final = re.compile(rf"""
    (?P<name>\w[\w.-]*+)(?<=[^\W_])(?<!\.conda)(?<!\.bz2)          # ends like a word, and not like a file of conda's
    (?:(?=[\s=<>!~])\s*+                                           # a blank or a sign, or it would be part of the name
       (?P<version>{_PART}(?:\s*+[,|]\s*+{_PART})*+)
       (?:(?:\s*+=\s*+|\s++)(?P<build>[^\s=<>!~,\[\]]++))?)?
    \s*+(?:\[(?P<brackets>{_PAIR}(?:,\s*+{_PAIR})*+)\])?
""", re.VERBOSE | re.ASCII)  # fmt: skip
"""An entry behind its channel. Nothing in it is tried in two ways, so that the longest takes no time to refuse."""
_BRACKET_KEYS: Final = frozenset({"version", "build", "build_number", "channel", "subdir"})
_COMPARISON: Final = re.compile(r"(==|>=|<=|!=|~=|>|<|=|)\s*([0-9]\w*(?:[.+!]\w+)*)(\.?\*)?", re.ASCII)
_ANY_VERSION: Final = frozenset({"*", "=*", "==*"})
_MAX_LENGTH: Final = 500
"""Of an entry, `CHANNEL::NAME VERSION BUILD[KEY=VALUE,…]` with `=` or blanks between the parts."""
_NAMES_SHOWN: Final = 5
_OF_CUDA: Final = re.compile("cuda|cudnn|cutensor|nccl")


def python_of(conda: Mapping[str, Any]) -> str:
    """The version of Python that a conda environment asks for, as in `3.11` or `>=3.9,<3.12`; empty if none.

    Raises:
        ValueError: an entry can't be read, or two ask for different versions.
    """
    packages = [_read_entry(entry) for entry in _entries(conda) if isinstance(entry, str)]
    versions = {_specifier(package): package.text for package in packages if package.name == "python"}
    versions.pop("", None)
    if len(versions) > 1:
        raise ValueError(
            f"{' and '.join(map(repr, versions.values()))} are two versions; write one, as in python>=3.9,<3.12"
        )
    version = next(iter(versions), "")
    plain = version.removeprefix("==").removesuffix(".*")
    return plain if PLAIN_VERSION.fullmatch(plain) else version


def requirements_of(conda: Mapping[str, Any]) -> list[str]:
    """The packages of a conda environment, without Python itself, as lines of a requirements file, each made anew of
    what was read (`requirements.py`).

    Raises:
        ValueError: packages are not on PyPI, or an entry can't be read.
    """
    tables = _name_tables()
    entries = [_read_entry(entry) if isinstance(entry, str) else entry for entry in _entries(conda)]
    packages = [entry for entry in entries if isinstance(entry, _CondaPackage)]
    if only_conda := [package for package in packages if tables.has_only_conda(package.name)]:
        raise ValueError(_why_refused(only_conda))  # before versions, which a whole export has in forms of conda's own
    lines: list[str] = []
    for entry in entries:
        match entry:
            case _CondaPackage(name=name) if name in tables.not_needed:
                _specifier(entry)  # so that nothing is left out that was not understood
            case _CondaPackage():
                name = tables.pypi_names.get(entry.name, entry.name)
                specifier = _specifier(entry, is_finer=name in tables.finer_on_pypi)
                lines.append(parse_requirement(name + specifier).text)
            case {"pip": list() | None as requirements} if len(entry) == 1:
                lines += (parse_requirement(line).text for line in requirement_lines(requirements or ()))
            case _:
                check_no_user(str(entry))
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


def _entries(conda: Mapping[str, Any]) -> list[Any]:
    """The dependencies of a conda environment.

    Raises:
        ValueError: they are no list, or the environment has keys that nobody reads.
    """
    for key in sorted(conda.keys() - _KEYS, key=str):
        hint = "write them as environment_variables of the job" if key == "variables" else did_you_mean(key, _KEYS)
        raise ValueError(f"{key!r} of a conda environment has no effect here; {hint or 'remove it'}")
    dependencies = conda.get("dependencies")
    if dependencies is None:
        return []
    if not isinstance(dependencies, list):
        raise ValueError("dependencies must be a list")
    return dependencies


@dataclass(frozen=True, slots=True)
class _CondaPackage:
    """A package of conda as an entry asks for it."""

    text: str
    """The entry without URLs: that of a channel may have a token in it."""
    name: str
    version: str
    """Comparisons with commas between them; empty if any version will do."""
    has_build: bool
    """The entry asks for one of conda's builds of this version."""


def _read_entry(entry: str) -> _CondaPackage:
    """Split an entry into its parts.

    Raises:
        ValueError: it is no package, or has a part that can't be read.
    """
    check_no_user(entry)
    channel, separator, text = entry.strip().rpartition("::")
    is_readable = len(entry) <= _MAX_LENGTH and entry.isprintable()
    match = _ENTRY.fullmatch(text) if is_readable and _CHANNEL.fullmatch(channel + separator) else None
    pairs = re.findall(_PAIR, match["brackets"] or "") if match else []
    if match is None or {key for key, _ in pairs} - _BRACKET_KEYS:
        hint = "write it as in numpy>=1.26,<2, and what only pip reads, as a URL or extras, under pip:"
        raise ValueError(f"{_without_urls(text[:_MAX_LENGTH])!r} is not a package of conda that can be read; {hint}")
    version = match["version"] or ""
    if match["build"] and version.startswith("=") and not version.startswith("==") and "," not in version:
        version = f"={version}"  # with a build, it is this version and none that begins so
    brackets: dict[str, str] = {key: value.strip("'\"") for key, value in pairs}
    has_build = bool(match["build"]) or "build" in brackets
    return _CondaPackage(_without_urls(text), match["name"].lower(), brackets.get("version", version), has_build)


def _without_urls(text: str) -> str:
    return re.sub(r"://[^\s'\"\]]*", "://…", text)


def _why_refused(only_conda: Sequence[_CondaPackage]) -> str:
    """Return the error about packages that PyPI does not have, with what to write instead."""
    names = ", ".join(repr(package.name) for package in only_conda[:_NAMES_SHOWN])
    others = len(only_conda) - _NAMES_SHOWN
    if others > 0:
        names += f" and {others} more"
    subject = f"the conda package {names} is" if len(only_conda) == 1 else f"the conda packages {names} are"
    advice = "list what does the same on PyPI under pip, and have programs in the image of the nodes"
    if others > 0 or any(package.name.startswith("_") or package.has_build for package in only_conda):
        advice = (
            "write the file with `conda env export --from-history`, without what conda itself has added, and copy the "
            f"part pip into it; {advice}"
        )
    if any(_OF_CUDA.search(package.name) for package in only_conda):
        advice = f"PyPI's PyTorch and TensorFlow bring a CUDA of their own, so leave out what is of it; {advice}"
    return f"{subject} not on PyPI; the environment is built with packages from there only: {advice}"


@dataclass(frozen=True, slots=True)
class _NameTables:
    """The differences between conda and PyPI."""

    not_needed: frozenset[str]
    only_conda: re.Pattern[str]
    """Names that PyPI doesn't have, unless one of the other tables has them."""
    finer_on_pypi: frozenset[str]
    pypi_names: Mapping[str, str]

    def has_only_conda(self, name: str) -> bool:
        """Return whether PyPI has no package that a conda package of this name stands for, and one is needed."""
        is_known = name in self.pypi_names or name in self.not_needed
        return not is_known and self.only_conda.fullmatch(name) is not None


@cache
def _name_tables() -> _NameTables:
    packages, pypi_names = (
        tomllib.loads(Path(__file__).with_name(file).read_text(encoding="utf-8"))
        for file in ("conda_packages.toml", "conda_pypi_names.toml")
    )
    return _NameTables(
        not_needed=frozenset(packages["not_needed"]),
        only_conda=re.compile("|".join(map(translate, packages["only_conda"]))),
        finer_on_pypi=frozenset(packages["finer_on_pypi"]),
        pypi_names=pypi_names | packages["pypi_names"],
    )


def _specifier(package: _CondaPackage, *, is_finer: bool = False) -> str:
    """The version in pip's form; empty if any will do.

    Args:
        is_finer: PyPI numbers what is one release of three parts in conda with one part more.

    Raises:
        ValueError: a part of it can't be read, or pip has no form for it.
    """
    if "|" in package.version:
        hint = "write one range, as in >=1.2,<1.4"
        raise ValueError(f"{package.text!r} has alternatives (|), which pip does not know; {hint}")
    if not package.version:
        return ""
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    parts = [part.strip() for part in package.version.split(",")]
    text = ",".join(_comparison(part, package, is_finer) for part in parts if part not in _ANY_VERSION)
    try:
        SpecifierSet(text)
    except InvalidSpecifier as error:
        raise ValueError(f"{package.text!r}: pip has no form for the version {text!r}") from error
    return text


def _comparison(part: str, package: _CondaPackage, is_finer: bool) -> str:
    """A part of a version in pip's form: to conda, `=1.2` is any that begins so, and `>=1.2.*` is `>=1.2`.

    Raises:
        ValueError: it can't be read, or is no version of PyPI's.
    """
    match = _COMPARISON.fullmatch(part)
    if match is None:
        hint = "write comparisons with commas between them, as in >=1.2,<1.4"
        raise ValueError(f"the version of {package.text!r} can't be read: {part!r}; {hint}")
    sign, version, star = match.groups()
    if version[-1].isalpha() and not version.endswith("dev"):  # to PyPI, 2023c is a candidate for a release 2023
        raise ValueError(f"{package.text!r}: PyPI numbers its releases otherwise than {version!r}; write its number")
    is_number = version.replace(".", "").isdigit()  # pip knows no prefixes such as 2.0a0
    if is_finer and is_number:
        return _finer(sign, version, bool(star))
    if sign and sign[0] in "<>~":
        return sign + version
    is_prefix = star or (is_number and sign == "=")
    return f"{'!=' if sign == '!=' else '=='}{version}{'.*' if is_prefix else ''}"


def _finer(sign: str, version: str, is_prefix: bool) -> str:
    """A comparison with a release of three parts of conda, as one with those of four parts that PyPI has for it."""
    *head, last = version.split(".") + ["0"] * (2 - version.count("."))
    match sign:
        case "<=" | ">":
            return f"{'<' if sign == '<=' else '>='}{'.'.join([*head, str(int(last) + 1)])}"
        case ">=" | "<" | "~=":
            return sign + version
    begin = version if is_prefix or sign == "=" else ".".join([*head, last])
    return f"{'!=' if sign == '!=' else '=='}{begin}.*"
