"""Fingerprints of files, as far as contents can be told without reading: by names, sizes and times (or tags, in a
store)."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterable, Iterator
from typing import Final

from parallelrun_core.spec.fields import Input
from parallelrun_core.storage.interface import Version
from parallelrun_core.storage.path_rule import PathRule
from parallelrun_core.storage.stores import storage_of

_MOST_FILES: Final = 20_000
_MOST_S: Final = 10.0
"""What takes longer to compare than this: to run the step may take as long, and a turn is short."""


class Unknown(Exception):
    """Raised when it can't be known whether two contents are equal."""


def content_of(job_input: Input, rule: PathRule | None) -> str:
    """Identifies the files that an input stands for, also by where they are.

    Raises:
        Unknown: there are none or too many, or their versions are not known.
        OSError, ParallelRunError: they can't be listed.
    """
    if job_input.type == "mltable":
        raise Unknown("it may name files that are elsewhere")
    digest, count = hashlib.sha256(), 0
    for where, file, version in _versions(job_input.path, rule, _Limit()):
        count += 1
        digest.update(repr((where, file, *version)).encode())
    if not count:
        raise Unknown(job_input.path)
    return f"files:{digest.hexdigest()}"


def content_of_outputs(paths: Iterable[str], rule: PathRule | None) -> str:
    """Identifies what is in the outputs of a job, wherever they are: a run may have brought it from another cluster.

    Raises:
        Unknown: one of them isn't there, there are too many files, or their versions are not known.
        OSError, ParallelRunError: they can't be listed.
    """
    digest, limit = hashlib.sha256(), _Limit()
    for number, path in enumerate(paths):
        storage = storage_of(path)
        if not (storage.is_there(path) or storage.is_folder(path)):
            raise Unknown(path)
        for where, file, version in _versions(path, rule, limit):
            name = os.fsdecode(where + b"/" + file if where else file)
            digest.update(repr((number, storage.below(name, path) or name, *version)).encode())
    return f"files:{digest.hexdigest()}"


class _Limit:
    """The limit on how much is compared."""

    def __init__(self) -> None:
        self._left = _MOST_FILES
        self._until = time.monotonic() + _MOST_S

    def is_reached(self) -> bool:
        """Return whether one file more is too much."""
        self._left -= 1
        return self._left < 0 or time.monotonic() > self._until


def _versions(path: str, rule: PathRule | None, limit: _Limit) -> Iterator[tuple[bytes, bytes, Version]]:
    """The folder, the name and the version of each file that a path stands for."""
    storage = storage_of(path)
    top, names = storage.split(path)
    listing = storage.files(top, names, rule)
    for where, files in listing:
        versions = listing.versions or [storage.version(where + b"/" + file if where else file) for file in files]
        for file, version in zip(files, versions, strict=True):
            if not version.is_known or limit.is_reached():
                raise Unknown(path)
            yield where, file, version
