"""`python -m supply_chain.images`: does every image from a registry have a digest? `--lock` asks the registry for them.

A tag may be another image tomorrow; `name:tag@sha256:…` is the same one, or none. What `--lock` writes is only ever
what a registry has answered.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from supply_chain import CLEAN, UNKNOWN, WRONG

ROOT: Final = Path(__file__).parents[1]
FILES: Final = (
    "Dockerfile",
    "docker-compose.yml",
    "deploy/swarm/stack.yml",
    "deploy/helm/parallelrun/values.yaml",
)
_REFERENCE: Final = re.compile(
    r"(ARG \w*IMAGE=|\$\{\w*IMAGE:-|\bimage: )([\w./-]+:[\w.-]+)(@sha256:[0-9a-f]{64})?(?=[\s}])"
)
_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")


class Image(NamedTuple):
    """What a file takes from a registry, unless a setting names another image."""

    file: str
    name: str
    digest: str
    """Empty: whatever has that name today."""


def images(root: Path) -> list[Image]:
    """All images that the files name."""
    return [
        Image(file, name, digest.removeprefix("@"))
        for file in FILES
        for _, name, digest in _REFERENCE.findall((root / file).read_text(encoding="utf-8"))
    ]


def lock(root: Path, digest_of: Callable[[str], str]) -> None:
    """Write the present digest of each image into the files, all or none.

    Raises:
        ValueError: a registry has answered something that is no digest.
    """
    digests = {name: digest_of(name) for name in sorted({image.name for image in images(root)})}
    for name, digest in digests.items():
        if not _DIGEST.fullmatch(digest):
            raise ValueError(f"{name}: {digest[:80]!r} is not a digest")
    for file in FILES:
        text = (root / file).read_text(encoding="utf-8")
        pinned = _REFERENCE.sub(lambda found: f"{found[1]}{found[2]}@{digests[found[2]]}", text)
        (root / file).write_text(pinned, encoding="utf-8")


def ask_registry(name: str) -> str:
    """The digest of an image for all platforms, as its registry has it.

    Raises:
        OSError, subprocess.SubprocessError: there is no answer.
    """
    command = ["docker", "buildx", "imagetools", "inspect", name, "--format", "{{.Manifest.Digest}}"]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout.strip()


def main(argv: list[str]) -> int:
    """Check, or lock; returns the exit code."""
    if argv == ["--lock"]:
        try:
            lock(ROOT, ask_registry)
        except (OSError, subprocess.SubprocessError, ValueError) as error:
            said = getattr(error, "stderr", None) or error
            print(f"images: nothing was locked; docker buildx and a registry have to answer: {str(said).strip()}")
            return WRONG
    for image in (all_images := images(ROOT)):
        print(f"images: {image.file}: {image.name} {image.digest or 'is NOT PINNED: make lock-images'}")
    return CLEAN if all(image.digest for image in all_images) else UNKNOWN


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
