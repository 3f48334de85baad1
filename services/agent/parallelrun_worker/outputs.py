"""The folders of outputs that are in a store: what a run() has written there is set aside for the agent, which uploads
it.

Files are moved, folders stay: a script may have made them in init(). A file that this process still has open belongs to
the mini-batch at whose end it is closed, or to none: then it is uploaded when the worker has ended.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


class Outputs:
    """The outputs of one worker.

    Args:
        folders: whose files are set aside, by the numbers of their outputs.
        aside: on the same file system.
    """

    def __init__(self, folders: Sequence[str], aside: str) -> None:
        self._folders = [os.path.realpath(folder) for folder in folders]
        self._aside = aside
        self._earlier: set[str] = set()
        """Files that a failed try has not begun: of init(), or open since an earlier mini-batch."""

    def begin(self) -> None:
        """init() is over: what is there belongs to the first mini-batch that succeeds."""
        self._earlier = {path for path, _, _ in self._files()}

    def set_aside(self, mini_batch: int) -> int:
        """Move what is there to where the agent finds it; returns how many files that were.

        Raises:
            OSError: it can't be moved.
        """
        files = list(self._files())
        if not files:
            return 0
        import shutil

        place = os.path.join(self._aside, str(mini_batch))
        shutil.rmtree(place, ignore_errors=True)  # of an earlier try, which did not become an outcome
        still_open, self._earlier = _open_files(), set()
        count = 0
        for path, number, below in files:
            if path in still_open:
                self._earlier.add(path)
                continue
            target = os.path.join(place, str(number), below)
            try:
                os.rename(path, target)
            except FileNotFoundError:
                os.makedirs(os.path.dirname(target), exist_ok=True)
                os.rename(path, target)
            count += 1
        return count

    def discard(self) -> None:
        """Remove what a try has written that has failed."""
        for path, _, _ in list(self._files()):
            if path not in self._earlier:
                try:
                    os.unlink(path)
                except OSError:
                    continue

    def _files(self) -> Iterator[tuple[str, int, str]]:
        """Each file: its path, the number of its folder, and its path below that. Links are no files."""
        for number, root in enumerate(self._folders):
            folders = [""]
            while folders:
                below = folders.pop()
                try:
                    with os.scandir(os.path.join(root, below)) as entries:
                        for entry in entries:
                            name = os.path.join(below, entry.name)
                            if entry.is_dir(follow_symlinks=False):
                                folders.append(name)
                            elif entry.is_file(follow_symlinks=False):
                                yield entry.path, number, name
                except FileNotFoundError:  # the script has removed it
                    continue


def _open_files() -> set[str]:
    """The paths of the files that this process has open."""
    paths = set()
    for number in os.listdir("/proc/self/fd"):  # noqa: PTH208 - as quick as can be, for each mini-batch
        try:
            paths.add(os.readlink(f"/proc/self/fd/{number}"))
        except OSError:
            continue
    return paths
