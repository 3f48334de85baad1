"""Files that this machine reaches by a path: on its own disk, or on a volume that the nodes share."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from parallelrun_core.paths import within
from parallelrun_core.storage.globs import split_existing
from parallelrun_core.storage.interface import Trouble, Version
from parallelrun_core.storage.local.checks import input_trouble, output_trouble, place_trouble
from parallelrun_core.storage.local.listing import LocalListing
from parallelrun_core.storage.local.new_file import LocalNewFile, unfinished


class LocalStorage:
    """See `interface.Storage`."""

    def place_trouble(self, path: str, roots: Sequence[Path]) -> Trouble | None:
        return place_trouble(path, roots)

    def is_within(self, path: str, roots: Sequence[Path]) -> bool:
        return within(Path(path), roots)

    def input_trouble(self, path: str, *, is_one_file: bool = False) -> Trouble | None:
        return input_trouble(path, is_one_file=is_one_file)

    def output_trouble(self, path: str, *, is_file: bool = False) -> Trouble | None:
        return output_trouble(Path(path).parent if is_file else Path(path))

    def split(self, path: str) -> tuple[str, list[str]]:
        return split_existing(path)

    def is_folder(self, path: str) -> bool:
        return Path(path).is_dir()

    def is_there(self, path: str) -> bool:
        return os.path.lexists(path)

    def files(self, path: str, below: Sequence[str] = ()) -> LocalListing:
        return LocalListing(path, below)

    def version(self, path: str | bytes) -> Version:
        status = os.stat(path)
        return Version(status.st_size, status.st_mtime)

    def open(self, path: str | bytes, version: Version | None = None) -> BinaryIO:
        return open(path, "rb", buffering=0)

    def for_engines(self, path: str) -> tuple[str, dict[str, str]]:
        return path, {}

    def create(self, path: str, owner: str) -> LocalNewFile:
        return LocalNewFile(Path(path), owner)

    def unfinished(self, path: str, owner: str) -> Sequence[str]:
        return unfinished(Path(path), owner)

    def discard(self, unfinished: Sequence[str]) -> None:
        for each in unfinished:
            Path(each).unlink(missing_ok=True)
