"""Files that this machine reaches by a path: on its own disk, or on a volume that the nodes share."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO, Final

from parallelrun_core.durable_files import sync_folder
from parallelrun_core.storage.globs import split_existing
from parallelrun_core.storage.interface import PathProblem, Replaced, Version
from parallelrun_core.storage.local.checks import input_trouble, output_trouble, place_trouble
from parallelrun_core.storage.local.listing import LocalListing
from parallelrun_core.storage.local.new_file import LocalNewFile, unfinished
from parallelrun_core.storage.path_rule import PathRule
from parallelrun_core.untrusted.paths import open_ordinary

_NOT_THERE: Final = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})


class LocalStorage:
    """The storage of local files, as `interface.Storage` describes it."""

    is_near = True

    def place_trouble(
        self, path: str, rule: PathRule, *, pattern: Sequence[str] | None = None, is_written: bool = False
    ) -> PathProblem | None:
        return place_trouble(path, rule, pattern=pattern, is_written=is_written)

    def input_trouble(
        self, path: str, *, is_one_file: bool = False, rule: PathRule | None = None
    ) -> PathProblem | None:
        return input_trouble(path, is_one_file=is_one_file, rule=rule)

    def output_trouble(self, path: str, *, is_file: bool = False) -> PathProblem | None:
        return output_trouble(Path(path).parent if is_file else Path(path))

    def split(self, path: str) -> tuple[str, list[str]]:
        return split_existing(path)

    def below(self, path: str, top: str) -> str | None:
        if path == top:
            return os.path.basename(path)
        folder = top.rstrip("/") + "/"
        return path.removeprefix(folder) if path.startswith(folder) else None

    def unique_relative_path(self, path: str) -> str:
        return path.lstrip("/")

    def is_folder(self, path: str) -> bool:
        try:
            return stat.S_ISDIR(os.stat(path).st_mode)
        except ValueError:
            return False
        except OSError as error:
            if error.errno in _NOT_THERE:
                return False
            raise

    def is_there(self, path: str) -> bool:
        return os.path.lexists(path)

    def files(self, path: str, below: Sequence[str] = (), rule: PathRule | None = None) -> LocalListing:
        return LocalListing(path, below, rule)

    def version(self, path: str | bytes) -> Version:
        status = os.stat(path)
        return Version(status.st_size, status.st_mtime)

    def open(
        self,
        path: str | bytes,
        rule: PathRule | None = None,
        *,
        version: Version | None = None,
        is_streamed: bool = False,
    ) -> BinaryIO:
        file = open_ordinary(path)
        if rule is not None:
            try:
                rule.check_opened(file.fileno(), os.fsencode(path))
            except BaseException:
                file.close()
                raise
        return file

    def whole(self, path: str, version: Version) -> memoryview:
        content = Path(path).read_bytes()
        if len(content) != version.size_bytes:
            raise Replaced(f"{path} has another size than when it was listed")
        return memoryview(content)

    def copy(
        self, path: str, version: Version, fd: int, part: range | None = None, rule: PathRule | None = None
    ) -> None:
        with (
            self.open(path, rule) as opened,
            open(opened.fileno(), "rb", closefd=False) as source,
            open(fd, "wb", closefd=False) as target,
        ):
            if part is None:
                shutil.copyfileobj(source, target)
            else:
                source.seek(part.start)
                target.write(source.read(len(part)))

    def identity(self, path: str) -> str:
        file = Path(path)
        return str(file.parent.resolve() / file.name)

    def create(self, path: str, job_id: str, rule: PathRule | None = None) -> LocalNewFile:
        if rule is not None:
            rule.check(os.fsencode(Path(path).parent), is_written=True)
        return LocalNewFile(Path(path), job_id, rule)

    def put(self, path: str, file: BinaryIO, size_bytes: int) -> None:
        beside = Path(path).with_name(f".parallelrun-{secrets.token_hex(6)}")
        beside.parent.mkdir(parents=True, exist_ok=True)
        try:
            with beside.open("xb") as copy:
                shutil.copyfileobj(file, copy)
            self.replace(str(beside), path)
        finally:
            beside.unlink(missing_ok=True)

    def replace(self, source: str, target: str) -> None:
        os.replace(source, target)
        sync_folder(Path(target).parent)

    def unfinished(self, path: str, job_id: str) -> Sequence[str]:
        return unfinished(Path(path), job_id)

    def discard(self, unfinished: Sequence[str]) -> None:
        for each in unfinished:
            Path(each).unlink(missing_ok=True)
