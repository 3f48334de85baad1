"""Builds of an environment that are careless about the packages in it.

`careless_build.py run` compiles what was installed with the environment's own interpreter, and asks its own installer;
`careless_build.py unpack` puts the files of packages wherever their names lead; `careless_build.py replace` does both;
`careless_build.py trust` lets packages run their setup whatever the installer knows.
"""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from unittest.mock import patch

from parallelrun_agent.environments import build


def _compile(folder: Path, _: str) -> None:
    for command in (["python", "-m", "compileall", "-q", str(folder / "lib")], ["uv", "--version"]):
        with suppress(OSError):
            subprocess.run(
                [folder / "bin" / command[0], *command[1:]], stdin=subprocess.DEVNULL, capture_output=True, check=False,
                timeout=60,
            )  # fmt: skip


def _unpack(arguments: Sequence[str], folder: Path, _: Any) -> None:
    package = Path(arguments[-1]).read_text().strip().replace("-", "_")
    [site] = folder.glob("lib/python*/site-packages")
    for wheel in Path(os.environ["UV_FIND_LINKS"]).glob(f"{package}-*.whl"):
        with zipfile.ZipFile(wheel) as archive:
            for member in archive.infolist():
                _, is_data, place = member.filename.partition(".data/data/")
                path = folder / place if is_data and ".." not in place else site / member.filename
                with suppress(OSError):
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.unlink(missing_ok=True)  # a link to the interpreter of this machine
                    if stat.S_ISLNK(member.external_attr >> 16):
                        path.symlink_to(archive.read(member).decode())
                    else:
                        path.write_bytes(archive.read(member))
                        path.chmod(0o755)


def _none(*_: Any) -> frozenset[str]:
    return frozenset()


_CARELESS: dict[str, dict[str, Any]] = {
    "run": {"_compile": _compile},
    "unpack": {"_run_installer": _unpack},
    "replace": {"_compile": _compile, "_run_installer": _unpack},
    "trust": {"with_credentials": _none, "_files_with_credentials": _none},
}
if __name__ == "__main__":
    with patch.multiple(build, **_CARELESS[sys.argv[1]]):
        sys.exit(build.main())
