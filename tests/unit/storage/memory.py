"""A second kind of storage, which only tests have: `memory://…`, to show that nothing else needs to know of it."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator, Sequence
from typing import BinaryIO

from parallelrun_core.storage.globs import START, Pattern, split_pattern
from parallelrun_core.storage.interface import NewFile, Page, PathProblem, Version
from parallelrun_core.storage.leftovers import LeftoverNames
from parallelrun_core.storage.path_rule import PathRule

_SCHEME = "memory://"


class _Listing:
    is_sorted = True

    def __init__(self, files: dict[str, bytes], path: str, below: Sequence[str]) -> None:
        self._files, self._path, self._below = files, path.rstrip("/"), below
        self.versions: Sequence[Version] | None = None
        self.markers = LeftoverNames()

    def __iter__(self) -> Iterator[Page]:
        for path in sorted(self._files):
            *folders, name = path.removeprefix(self._path).lstrip("/").split("/")
            matcher, states = Pattern(self._below or ["**"]), START
            for folder in folders:
                states = matcher.enter(states, folder.encode())
            if path.startswith(self._path + "/") and matcher.is_match(states, name.encode()):
                self.versions = [Version(len(self._files[path]), 1.0, "tag")]
                yield path.rpartition("/")[0].encode(), [name.encode()]


class _Reader(io.RawIOBase):
    """Has no descriptor, and knows what was read of it."""

    def __init__(self, data: bytes, ranges: list[tuple[int, int]]) -> None:
        super().__init__()
        self._data, self._ranges, self._at = data, ranges, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: len(self._data)}[whence] + offset
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        part = self._data[self._at : self._at + len(buffer)]
        self._ranges.append((self._at, len(buffer)))
        buffer[: len(part)] = part
        self._at += len(part)
        return len(part)


class MemoryStorage:
    """See `interface.Storage`. `content` is that of its files, by path; `ranges` what was read of any."""

    is_near = True

    def __init__(self) -> None:
        self.content: dict[str, bytes] = {}
        self.ranges: list[tuple[int, int]] = []

    def place_trouble(
        self, path: str, rule: PathRule, *, pattern: Sequence[str] | None = None, is_written: bool = False
    ) -> PathProblem | None:
        return None if path.startswith(f"{_SCHEME}open/") else PathProblem(f"{path!r} is not below {_SCHEME}open")

    def input_trouble(
        self, path: str, *, is_one_file: bool = False, rule: PathRule | None = None
    ) -> PathProblem | None:
        return None

    def output_trouble(self, path: str, *, is_file: bool = False) -> PathProblem | None:
        return None

    def split(self, path: str) -> tuple[str, list[str]]:
        return split_pattern(path)

    def below(self, path: str, top: str) -> str | None:
        return path.removeprefix(f"{top}/") if path.startswith(f"{top}/") else None

    def unique_relative_path(self, path: str) -> str:
        return path.partition("://")[2]

    def is_folder(self, path: str) -> bool:
        return any(name.startswith(path.rstrip("/") + "/") for name in self.content)

    def is_there(self, path: str) -> bool:
        return path in self.content or self.is_folder(path)

    def files(self, path: str, below: Sequence[str] = (), rule: PathRule | None = None) -> _Listing:
        start, pattern = (path, list(below)) if below else self.split(path)
        return _Listing(self.content, start, pattern)

    def version(self, path: str | bytes) -> Version:
        try:
            return Version(len(self.content[_text(path)]), 1.0, "tag")
        except KeyError:
            raise FileNotFoundError(path) from None

    def open(
        self,
        path: str | bytes,
        rule: PathRule | None = None,
        *,
        version: Version | None = None,
        is_streamed: bool = False,
    ) -> BinaryIO:
        return _Reader(self.content[_text(path)], self.ranges)  # type: ignore[return-value]

    def whole(self, path: str, version: Version) -> memoryview:
        return memoryview(self.content[path])

    def copy(
        self, path: str, version: Version, fd: int, part: range | None = None, rule: PathRule | None = None
    ) -> None:
        os.write(fd, self.content[path] if part is None else self.content[path][part.start : part.stop])

    def identity(self, path: str) -> str:
        return path

    def put(self, path: str, file: BinaryIO, size_bytes: int) -> None:
        self.content[path] = file.read()

    def replace(self, made: str, target: str) -> None:
        self.content[target] = self.content.pop(made)

    def create(self, path: str, job_id: str, rule: PathRule | None = None) -> NewFile:
        raise NotImplementedError

    def unfinished(self, path: str, job_id: str) -> Sequence[str]:
        return []

    def discard(self, unfinished: Sequence[str]) -> None:
        return None


def _text(path: str | bytes) -> str:
    return path if isinstance(path, str) else path.decode()
