"""`python -m supply_chain.wheel WHEEL WHEEL`: compares two builds of a wheel; says how they differ, and exits with 1.

Two builds of one commit are the same bytes, whatever the time and the folder. SOURCE_DATE_EPOCH sets the times of the
files in it.
"""

from __future__ import annotations

import sys
from hashlib import sha256
from pathlib import Path
from zipfile import ZipFile


def content(wheel: Path) -> dict[str, str]:
    """The hash of each file in a wheel."""
    with ZipFile(wheel) as archive:
        return {name: sha256(archive.read(name)).hexdigest() for name in archive.namelist()}


def main() -> int:
    """Compare; returns the exit code."""
    first, second = map(Path, sys.argv[1:])
    different = differences(first, second)
    for name in different:
        print(f"not the same in both: {name}", file=sys.stderr)
    if not different:
        print(f"{first}: {len(content(first))} files, the same in both builds; sha256 {hash_of(first)}")
    return int(bool(different))


def differences(first: Path, second: Path) -> list[str]:
    """What is not the same in two wheels: names of files, or what else is in an archive."""
    one, other = content(first), content(second)
    different = sorted(name for name in one.keys() | other.keys() if one.get(name) != other.get(name))
    if not different and hash_of(first) != hash_of(second):
        different.append("the order, the times or the rights of the files")
    return different


def hash_of(wheel: Path) -> str:
    """The hash of a wheel as it is."""
    return sha256(wheel.read_bytes()).hexdigest()


if __name__ == "__main__":
    sys.exit(main())
