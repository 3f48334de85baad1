"""The versions of listed files, on their way from a listing past what cuts it to the message that has them.

What cuts knows files by folder and name, as there are kinds of storage without versions. So a version waits here until
its file is encoded; what was left out on the way is forgotten.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from parallelrun_core.message import FileVersion
from parallelrun_core.storage.interface import Listing, Page
from parallelrun_core.storage.stores import storage_of
from parallelrun_core.storage.versions import packed


class Versions:
    """Those of one input, whose listings have them."""

    def __init__(self) -> None:
        self._waiting: dict[tuple[bytes, bytes], FileVersion] = {}
        self._page: dict[bytes, FileVersion] = {}

    def noted(self, listing: Listing) -> Iterator[Page]:
        """The pages of a listing, each with its versions noted before it is yielded."""
        for folder, names in listing:
            versions = listing.versions
            self._page = dict(zip(names, map(packed, versions), strict=True)) if versions is not None else {}
            yield folder, names

    def kept(self, pages: Iterable[Page]) -> Iterator[Page]:
        """What is left of those pages: only these versions are kept."""
        for folder, names in pages:
            page = self._page
            self._waiting.update(((folder, name), page[name]) for name in names if name in page)
            yield folder, names

    def taken(self, groups: Iterable[Page]) -> list[FileVersion]:
        """Those of the files of one mini-batch, in their order; they are not kept any longer."""
        return [self._waiting.pop((folder, name)) for folder, names in groups for name in names]

    def taken_of(self, path: bytes) -> FileVersion:
        """That of one file; of a table that knows its files without a listing, the present one.

        Raises:
            OSError: its storage can't be asked.
        """
        folder, name = os.path.split(path)
        for spelled in (folder, folder + b"/"):  # a bucket has a slash at its end
            if (version := self._waiting.pop((spelled, name), None)) is not None:
                return version
        return packed(storage_of(path).version(path))
