"""The versions of listed files, on their way from a listing past what cuts it to the message that has them.

What cuts knows files by folder and name, as there are kinds of storage without versions. So a version waits here until
its file is encoded; what was left out on the way is forgotten.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from itertools import repeat

from parallelrun_core.storage.interface import Listing, Page, packed
from parallelrun_core.storage.stores import storage_of
from parallelrun_core.wire.message import FileVersion


class Versions:
    """The versions of one input's files, whose listings have them."""

    def __init__(self) -> None:
        self._waiting: dict[bytes, dict[bytes, FileVersion]] = {}
        """By folder and name."""
        self._page: dict[bytes, FileVersion] = {}

    def noted(self, listing: Listing) -> Iterator[Page]:
        """The pages of a listing, each with its versions noted before it is yielded."""
        for folder, names in listing:
            versions = listing.versions
            self._page = dict(zip(names, map(packed, versions), strict=True)) if versions is not None else {}
            yield folder, names

    def keep_only(self, pages: Iterable[Page]) -> Iterator[Page]:
        """Return what is left of those pages: only these versions are kept."""
        for folder, names in pages:
            page = self._page
            still_needed = page if len(names) == len(page) else {name: page[name] for name in names if name in page}
            if still_needed:
                self._waiting.setdefault(folder, {}).update(still_needed)
            yield folder, names

    def take(self, groups: Iterable[Page]) -> list[FileVersion]:
        """Return the versions of the files of one mini-batch, in their order; they are not kept any longer.

        Raises:
            OSError: the storage can't be asked for that of a file which was listed twice.
        """
        versions: list[FileVersion] = []
        for folder, names in groups:
            waiting = self._waiting.get(folder, {})
            listed = list(map(waiting.pop, names, repeat(None)))
            versions += [each or _present(os.path.join(folder, name)) for each, name in zip(listed, names, strict=True)]
            if not waiting:
                self._waiting.pop(folder, None)
        return versions

    def taken_of(self, path: bytes) -> FileVersion:
        """Return the version of one file; of a table that knows its files without a listing, the present one.

        Raises:
            OSError: its storage can't be asked.
        """
        folder, name = os.path.split(path)
        for spelled in (folder, folder + b"/"):  # a bucket has a slash at its end
            waiting = self._waiting.get(spelled, {})
            if (version := waiting.pop(name, None)) is not None:
                if not waiting:
                    del self._waiting[spelled]
                return version
        return _present(path)


def _present(path: bytes) -> FileVersion:
    return packed(storage_of(path).version(path))
