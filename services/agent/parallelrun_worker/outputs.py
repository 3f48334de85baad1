"""The folders of outputs that are in a store: what a run() has written there is set aside for the agent, which uploads
it.

Files are moved, folders stay: a script may have made them in init(). A file that this process still has open belongs to
the mini-batch at whose end it is closed, or to none: then it is uploaded when the worker has ended.
"""

from __future__ import annotations

import os
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
        self._of_parts = 0
        """Files that parts of the present mini-batch have written, which are set aside."""

    def begin(self) -> None:
        """init() is over: what is there belongs to the first mini-batch that succeeds."""
        self._earlier = {path for path, _, _ in self._files()}

    def set_aside(self, mini_batch: int) -> int:
        """Move what is there to where the agent finds it; returns how many files of the mini-batch are there.

        Raises:
            OSError: it can't be moved.
        """
        of_parts, self._of_parts = self._of_parts, 0
        return of_parts + self._move(mini_batch, is_first=not of_parts)

    def set_part_aside(self, mini_batch: int) -> None:
        """Move what run() has written for some of a mini-batch's items: what fails next can't change it any more.

        Raises:
            FileExistsError: another part of the mini-batch has written a file of this name.
            OSError: it can't be moved.
        """
        self._of_parts += self._move(mini_batch, is_first=not self._of_parts, is_part=True)

    def _move(self, mini_batch: int, *, is_first: bool, is_part: bool = False) -> int:
        # What is earlier than a part belongs to the whole mini-batch, if that succeeds.
        files = [each for each in self._files() if not (is_part and each[0] in self._earlier)]
        if not files:
            return 0
        place = os.path.join(self._aside, str(mini_batch))
        if is_first:
            import shutil

            shutil.rmtree(place, ignore_errors=True)  # of an earlier try, which did not become an outcome
        still_open, self._earlier = _open_files(), self._earlier if is_part else set()
        count = 0
        for path, number, below in files:
            if path in still_open:
                self._earlier.add(path)
                continue
            target = os.path.join(place, str(number), below)
            if is_part and os.path.exists(target):
                raise FileExistsError(f"two parts have written {below!r}")
            try:
                os.rename(path, target)
            except FileNotFoundError:
                os.makedirs(os.path.dirname(target), exist_ok=True)
                os.rename(path, target)
            count += 1
        return count

    def discard(self) -> None:
        """Remove what a try has written that has failed."""
        self._of_parts = 0
        self.discard_part()

    def discard_part(self) -> None:
        """Remove what run() has written for items for which it has failed."""
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
