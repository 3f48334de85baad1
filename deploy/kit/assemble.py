"""Puts an agent together that runs in any image for its kind of CPU: run by the Dockerfile, for its target `kit`.

python assemble.py TARGET VENV PATCHELF

TARGET becomes a folder with all that the agent needs: Python and its standard library (`python`), our packages and
those that they use (`venv`), and every shared library of these, with the loader of programs (`lib`). The interpreter
is told to use that loader, and to look for libraries there before anywhere else. So it doesn't matter which C library
an image has, or whether it has any. The folder must be mounted at the same path, read-only.

A Python that was built to be carried around would need no loader, but has to be downloaded from a place that is no
package index; and to link this one statically, numpy and all others would have to be built anew.
"""

from __future__ import annotations

import compileall
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from py_compile import PycInvalidationMode

_LEFT_OUT = shutil.ignore_patterns(
    "__pycache__", "test", "tests", "idlelib", "tkinter", "turtledemo", "ensurepip", "site-packages", "dist-packages",
    "config-*", "*.a",
)  # fmt: skip
_OF_OTHERS = shutil.ignore_patterns(
    "__pycache__", "pip", "pip-*", "setuptools", "setuptools-*", "_duckdb*",
    *(f"{name}{ending}" for name in ("deltalake", "duckdb", "fastavro", "numpy", "numpy.libs", "pandas", "pyarrow")
      for ending in ("", "-*")),
)  # fmt: skip
"""What masters need, and workers, who have the image's."""
_LIBRARY = re.compile(r"=> (?P<path>/\S+) \(|^\s*(?P<loader>/\S+/ld-\S+) \(")
_NAME_SERVICES = ("libnss_files.so.2", "libnss_dns.so.2", "libresolv.so.2")
"""Loaded by name, when a host's address is asked for; parts of the C library itself since glibc 2.34."""
_FIRST = ("libstdc++.so.6", "libgcc_s.so.1")
"""Loaded before any package: one that names its own places for libraries could find the image's instead."""


def main(target: Path, venv: Path, patchelf: Path) -> None:
    """Make the folder."""
    interpreter = _copy_python(target / "python")
    _copy_packages(target / "venv", venv, interpreter)
    libraries = target / "lib"
    libraries.mkdir()
    loader = _copy_libraries(target, libraries)
    there = [name for name in _FIRST if (libraries / name).exists()]
    subprocess.run(
        [
            patchelf, "--set-interpreter", loader, "--force-rpath", "--set-rpath", libraries,
            *(option for name in there for option in ("--add-needed", name)), interpreter,
        ],
        check=True,
    )  # fmt: skip
    compileall.compile_dir(target, quiet=1, workers=0, invalidation_mode=PycInvalidationMode.UNCHECKED_HASH)


def _copy_python(folder: Path) -> Path:
    """Interpreter and standard library; returns the interpreter."""
    name = f"python{sys.version_info.major}.{sys.version_info.minor}"
    library = Path(sysconfig.get_paths(vars={"installed_base": sys.base_prefix, "base": sys.base_prefix})["stdlib"])
    shutil.copytree(library, folder / "lib" / name, ignore=_LEFT_OUT, symlinks=False, ignore_dangling_symlinks=True)
    (folder / "bin").mkdir()
    interpreter = folder / "bin" / name
    shutil.copy2(os.path.realpath(Path(sys.base_prefix) / "bin" / name), interpreter)
    return interpreter


def _copy_packages(folder: Path, venv: Path, interpreter: Path) -> None:
    """A virtual environment, so that the interpreter looks for packages nowhere else."""
    packages = Path("lib", interpreter.name, "site-packages")
    shutil.copytree(venv / packages, folder / packages, ignore=_OF_OTHERS)
    (folder / "bin").mkdir()
    (folder / "bin" / "python").symlink_to(os.path.relpath(interpreter, folder / "bin"))
    shutil.copy2(venv / "bin" / "uv", folder / "bin" / "uv")
    version = ".".join(map(str, sys.version_info[:3]))
    (folder / "pyvenv.cfg").write_text(
        f"home = {interpreter.parent}\ninclude-system-site-packages = false\nversion = {version}\n"
    )


def _copy_libraries(target: Path, libraries: Path) -> Path:
    """Every library that something in the folder needs and that isn't in it; returns the loader among them."""
    loader = None
    needed: dict[str, Path] = {}
    for file in _programs(target):
        said = subprocess.run(["ldd", file], check=False, capture_output=True, text=True).stdout  # noqa: S607
        for match in map(_LIBRARY.search, said.splitlines()):
            if match:
                path = Path(match["path"] or match["loader"])
                if not path.is_relative_to(target):
                    needed.setdefault(path.name, path)
                if match["loader"]:
                    loader = path.name
    if loader is None:
        raise SystemExit("this Python names no loader: there is nothing to bring along")
    beside = needed["libc.so.6"].parent
    for name in _NAME_SERVICES:
        if (beside / name).exists():
            needed.setdefault(name, beside / name)
    for name, path in sorted(needed.items()):
        shutil.copy2(os.path.realpath(path), libraries / name)
    return libraries / loader


def _programs(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink():
            with path.open("rb") as file:
                if file.read(4) == b"\x7fELF":
                    yield path


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
