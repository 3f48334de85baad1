"""Images that are not ours: made here of the base image, each with a Python and a package of its own."""

from __future__ import annotations

import io
import os
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import docker

BASE = os.environ.get("BASE_IMAGE", "python:3.12-slim-bookworm")
ENTRY = """
import platform, sys
def run(mini_batch):
    import six
    try:
        import toml
    except ImportError:
        toml = None
    return [f"{platform.python_version()} six {six.__version__} toml {bool(toml)} {sys.prefix != sys.base_prefix}"]
"""
"""Says which Python runs it, and with which packages."""
_LEFT_OUT = frozenset({"test", "tests", "idlelib", "tkinter", "turtledemo", "site-packages", "__pycache__", "share"})
_PYENV = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"


def with_redis(engine: docker.DockerClient) -> str:
    """An image with a Redis server and a data folder that belongs to its user, for engines that reach no registry."""
    if given := os.environ.get("PARALLELRUN_REDIS_IMAGE"):
        return given
    if "BASE_IMAGE" not in os.environ:
        return "redis:7-bookworm"
    return _built(engine, "parallelrun-redis:engine-test", f"FROM {BASE}\nRUN mkdir /data && chown 999:999 /data\n")


def with_environment(engine: docker.DockerClient) -> str:
    """An image whose Python is in a virtual environment, with six 1.16.0."""
    text = (
        f"FROM {BASE}\nRUN python3 -m venv /opt/app && /opt/app/bin/pip install --no-cache-dir six==1.16.0\n"
        "ENV PATH=/opt/app/bin:/usr/bin:/bin PYTHONHOME= LD_LIBRARY_PATH=/nowhere\n"
    )
    return _built(engine, "parallelrun-with-environment:engine-test", text)


def with_other_python(engine: docker.DockerClient) -> tuple[str, str]:
    """An image with another version of Python, and six 1.17.0; and that version, such as 3.8.

    It is one that pyenv has on this machine; where there is none, the image has the Python of the base image.
    """
    there = [path for path in sorted(_PYENV.glob("3.*.*")) if path.name.startswith(("3.8.", "3.9.", "3.10.", "3.13."))]
    python = f"COPY python {there[0]}\nENV PATH={there[0]}/bin:/usr/bin:/bin\n" if there else ""
    text = (
        f"FROM {BASE}\n{python}RUN mkdir -p /opt/more && cd /opt/more && echo \"__version__ = '1.17.0'\" > six.py\n"
        "ENV PYTHONPATH=/opt/more\n"
    )
    image = _built(engine, "parallelrun-with-other-python:engine-test", text, there[0] if there else None)
    return image, ".".join(there[0].name.split(".")[:2]) if there else ""


def _built(engine: docker.DockerClient, tag: str, text: str, python: Path | None = None) -> str:
    context = io.BytesIO()
    with tarfile.open(fileobj=context, mode="w") as archive:
        entry = tarfile.TarInfo("Dockerfile")
        entry.size = len(text)
        archive.addfile(entry, io.BytesIO(text.encode()))
        if python is not None:
            archive.add(python, "python", filter=_needed)
    context.seek(0)
    engine.images.build(fileobj=context, custom_context=True, tag=tag)
    return tag


def _needed(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """What an interpreter needs; the same each time, so that the engine's cache has it."""
    path = Path(entry.name)
    if _LEFT_OUT.intersection(path.parts) or path.suffix == ".a" or path.name.startswith("config-"):
        return None
    entry.mtime = 0
    return entry
