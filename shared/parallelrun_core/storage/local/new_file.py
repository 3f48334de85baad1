"""A new file beside the one that it becomes: invisible until it is whole and durable."""

from __future__ import annotations

import glob
import secrets
from collections.abc import Container
from pathlib import Path
from typing import Final

from parallelrun_core.durable_files import sync_folder
from parallelrun_core.storage.local.direct import DirectFile
from parallelrun_core.storage.local.publishing import publish
from parallelrun_core.storage.path_rule import PathRule

_MARK: Final = ".merging-"


def unfinished_prefix(owner: str) -> str:
    """Return how the names of the files begin that are on their way for this owner."""
    return f"{_MARK}{owner}-"


class LocalNewFile(DirectFile):
    """A local file on its way, as `interface.NewFile` describes it."""

    def __init__(self, target: Path, owner: str, rule: PathRule | None = None) -> None:
        target.parent.mkdir(parents=True, exist_ok=True)
        self._target = target
        self._beside = target.with_name(f"{unfinished_prefix(owner)}{secrets.token_hex(8)}")
        super().__init__(self._beside)
        if rule is not None:
            try:
                rule.check_opened(self.fd, bytes(self._beside), is_written=True)
            except BaseException:
                self.__exit__()
                raise

    def __enter__(self) -> LocalNewFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
        self._beside.unlink(missing_ok=True)

    def publish(self, own_hashes: Container[str]) -> None:
        self.close()  # a file server keeps a file that is removed while it is open, under another name
        publish(self._beside, self._target, own_hashes)
        sync_folder(self._target.parent)


def unfinished(target: Path, owner: str) -> list[str]:
    """The files beside the target that are on their way for this owner, or were when their process died."""
    return [str(path) for path in target.parent.glob(f"{glob.escape(unfinished_prefix(owner))}*")]
