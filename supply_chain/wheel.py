"""`python -m supply_chain.wheel WHEEL WHEEL`: compares two builds of a wheel; says how they differ, and exits with 1.

Two builds of one commit have the same files with the same content, whatever the time and the folder.
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
    one, other = (content(Path(wheel)) for wheel in sys.argv[1:])
    different = sorted(name for name in one.keys() | other.keys() if one.get(name) != other.get(name))
    for name in different:
        print(f"not the same in both: {name}", file=sys.stderr)
    if not different:
        print(f"{sys.argv[1]}: {len(one)} files, the same in both builds")
    return int(bool(different))


if __name__ == "__main__":
    sys.exit(main())
