"""The request for a build: its settings, and the files as a tar, the same bytes each time."""

from __future__ import annotations

import json
import os
import tarfile
from collections.abc import Iterator
from errno import EIO
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from parallelrun_core.code.dockerfile_check import BUILT_HERE
from parallelrun_core.computes.containers import Containers
from parallelrun_core.names.computes import BuiltImage
from parallelrun_provisioner.engines.docker.node import CLUSTER
from parallelrun_provisioner.engines.docker.settings import DockerSettings

BUILT: Final = "parallelrun.built"
"""The label of images that were built here; its value says of what."""
_PERIOD_US: Final = 100_000
_CHUNK_BYTES: Final = 1 << 20
_BLOCK_BYTES: Final = tarfile.BLOCKSIZE


def tag_of(image: BuiltImage, platform: str) -> str:
    """Return what the Engine calls an image that is built.

    Args:
        platform: for which it is built, as in linux/amd64.
    """
    return f"{BUILT_HERE}:{sha256(json.dumps([*image, platform]).encode()).hexdigest()[:40]}"


def parameters(
    image: BuiltImage, tag: str, cluster: str, compute: Containers, settings: DockerSettings
) -> dict[str, Any]:
    """Return the parameters of `POST /build`. A step of it may use as much CPU and memory as a node of this compute."""
    limits: dict[str, Any] = {"shmsize": compute.shm_bytes}
    if settings.build_network:
        limits["networkmode"] = settings.build_network
    if settings.build_cgroup:
        limits["cgroupparent"] = settings.build_cgroup
    if not settings.build_images:  # what is on the Engine may be somebody's own
        limits["pull"] = "true"
    if compute.cpus:
        limits |= {"cpuperiod": _PERIOD_US, "cpuquota": round(compute.cpus * _PERIOD_US)}
    if compute.memory_bytes:
        limits |= {"memory": compute.memory_bytes, "memswap": compute.memory_bytes}
    return {
        "t": tag,
        "dockerfile": image.dockerfile,
        "labels": json.dumps({BUILT: image.name, CLUSTER: cluster}),
        "rm": "true",
        "forcerm": "true",
        "version": "1",  # the Engine's own builder: BuildKit needs a client that speaks with it
        **limits,
    }


def tar_of(folder: Path) -> Iterator[bytes]:
    """All files below a folder, as a tar whose bytes depend on their paths, contents and rights to execute alone.

    Raises:
        OSError: a folder or a file can't be read to its end: what lacks a part must not become an image.
    """

    def fail(error: OSError) -> None:
        raise error

    for current, folders, names in os.walk(folder, onerror=fail):
        folders.sort()
        for name in sorted(names):
            yield from _entry(Path(current, name), folder)
    yield bytes(2 * _BLOCK_BYTES)


def _entry(path: Path, folder: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        status = os.fstat(file.fileno())
        entry = tarfile.TarInfo(str(path.relative_to(folder)))
        entry.size = status.st_size
        entry.mode = 0o755 if status.st_mode & 0o100 else 0o644
        yield entry.tobuf(tarfile.GNU_FORMAT, errors="surrogateescape")
        remaining_bytes = entry.size
        while remaining_bytes and (chunk := file.read(min(remaining_bytes, _CHUNK_BYTES))):
            remaining_bytes -= len(chunk)
            yield chunk
        if remaining_bytes:
            raise OSError(EIO, "the file has become shorter", str(path))
        yield bytes(-entry.size % _BLOCK_BYTES)
