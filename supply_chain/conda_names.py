"""Writes the names that packages of conda have on PyPI: `python -m supply_chain.conda_names FOLDER`.

Their source is the table in the package conda-pypi, of conda's own developers: the bot of conda-forge reads it off the
recipes, which say where a package comes from. It is MIT-licensed, as the written file says. Of its 12,000 names only
those are written without which `parallelrun_core.spec.conda` would take a package for another one. The same release
makes the same file, so the environment that runs this has the one of `requirements/conda-names.txt`.
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from importlib.metadata import distribution
from pathlib import Path
from typing import Final

SOURCE: Final = "conda-pypi"
_TABLE: Final = "conda_pypi/grayskull_pypi_mapping.json"
_HASH: Final = re.compile(r"[0-9a-f]{40,}")
"""A part of a URL of PyPI, where a recipe names a file by its hash."""


def pypi_names(table: dict[str, dict[str, str]], packages: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Return the names on PyPI by that of conda, where they differ, or where `only_conda` would leave them out.

    Args:
        table: as in the package: an entry with both names for each name on PyPI.
        packages: `only_conda`, forms of names, `not_from_table` and `pypi_names` of `conda_packages.toml`.

    Raises:
        SystemExit: a name stands for several, and `pypi_names` doesn't say for which.
    """
    by_conda_name = defaultdict[str, set[str]](set)
    for entry in table.values():
        if not _HASH.fullmatch(entry["pypi_name"]):
            by_conda_name[entry["conda_name"]].add(entry["pypi_name"])
    names: dict[str, str] = {}
    for conda_name, on_pypi in sorted(by_conda_name.items()):
        is_the_same = re.sub(r"[-_.]+", "-", conda_name) in on_pypi
        is_refused = any(fnmatchcase(conda_name, form) for form in packages["only_conda"])
        if is_the_same and is_refused:
            names[conda_name] = conda_name
        elif not is_the_same and len(on_pypi) == 1 and conda_name not in packages["not_from_table"]:
            [names[conda_name]] = on_pypi
        elif len(on_pypi) > 1 and not is_the_same and not is_refused and conda_name not in packages["pypi_names"]:
            raise SystemExit(f"{conda_name} is one of {sorted(on_pypi)}: say which in pypi_names, or refuse it")
    return names


def main() -> None:
    """Write `conda_pypi_names.toml` into the folder, beside the `conda_packages.toml` that is there.

    Raises:
        SystemExit: no folder is named, or the package came without its license.
    """
    if len(sys.argv) != 2:
        raise SystemExit("usage: python -m supply_chain.conda_names FOLDER")
    folder = Path(sys.argv[1])
    packages = tomllib.loads((folder / "conda_packages.toml").read_text(encoding="utf-8"))
    source = distribution(SOURCE)
    table = json.loads(Path(str(source.locate_file(_TABLE))).read_text(encoding="utf-8"))
    license_file = next((file for file in source.files or () if file.name == "LICENSE"), None)
    if license_file is None:
        raise SystemExit(f"{SOURCE} {source.version} has no LICENSE, which the written file must have")
    terms = license_file.read_text(encoding="utf-8")
    title = f"Written by `make conda-names` from {_TABLE} of {SOURCE} {source.version}, which has this license:"
    header = "".join(f"# {line}".rstrip() + "\n" for line in [title, "", *terms.strip().splitlines()])
    lines = [f"{json.dumps(name)} = {json.dumps(on_pypi)}\n" for name, on_pypi in pypi_names(table, packages).items()]
    (folder / "conda_pypi_names.toml").write_text(f"{header}\n{''.join(lines)}", encoding="utf-8")


if __name__ == "__main__":
    main()
