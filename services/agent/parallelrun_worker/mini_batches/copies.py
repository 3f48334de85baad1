"""Files of a mini-batch on the node's own disk: modes `download` and `eval_download` (reference §2.3).

The worker copies them before run() and removes them after it. They keep their names and their folders below the input.
"""

from __future__ import annotations

import os


class Copies:
    """Copies one mini-batch after the other.

    Args:
        folder: where to; created when it is needed.
        workers: how many workers of this node may do the same at the same time, this one included.
    """

    def __init__(self, folder: str, workers: int) -> None:
        self._folder = folder
        self._workers = workers
        self._is_first = True

    def take(self, paths: list[str], root: str) -> list[str]:
        """Copy files that lie below `root`; returns the paths of the copies.

        Raises:
            OSError: a file can't be read.
            ValueError: the disk has no room for them.
        """
        import shutil

        self.remove()
        self._check_room(sum(os.stat(path).st_size for path in paths))
        root = root.rstrip("/") + "/"
        copies = []
        try:
            for path in paths:
                below = path[len(root) :] if path.startswith(root) else path.lstrip("/")
                copy = os.path.join(self._folder, below)
                os.makedirs(os.path.dirname(copy), exist_ok=True)
                shutil.copyfile(path, copy)
                copies.append(copy)
        except OSError:
            self.remove()  # a full disk needs the room
            raise
        return copies

    def _check_room(self, size: int) -> None:
        import shutil

        folder = self._folder
        while not os.path.isdir(folder):
            folder = os.path.dirname(folder)
        free = shutil.disk_usage(folder).free
        count = self._workers if self._is_first else 1
        self._is_first = False
        if size * count > free:
            of_whom = f"each of {count:,} workers" if count > 1 else "this worker"
            raise ValueError(
                f"the node's disk has no room for the copies: {_mib(size)} for {of_whom}, "
                f"{_mib(free)} free at {folder}; lower mini_batch_size or max_concurrency_per_instance, or use ro_mount"
            )

    def remove(self) -> None:
        """Remove the copies of the last mini-batch."""
        if os.path.isdir(self._folder):
            import shutil

            shutil.rmtree(self._folder, ignore_errors=True)


def _mib(size: int) -> str:
    return f"{size / (1 << 20):,.1f} MiB"
