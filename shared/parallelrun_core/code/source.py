"""The code of a job: a folder, and files and folders that are put beside what is in it, as `additional_includes` says.

An include is put at the top under its own name. One whose name ends in `.zip`, where there is no such file, stands for
a zip of the folder without the ending, as in Azure ML's components.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

from parallelrun_core.code.folder import (
    LEAVE_OUT_HINT,
    FilesBelow,
    Ignored,
    NothingIgnored,
    code_files,
    files_below,
    ignored_in,
    opened_top,
)
from parallelrun_core.errors import InvalidInput
from parallelrun_core.names.assets import INCLUDES as FIELD

if TYPE_CHECKING:
    from parallelrun_core.storage.path_rule import PathRule

_ZIP: Final = ".zip"
_SOME_DATE: Final = (1980, 1, 1, 0, 0, 0)
_COPY_BYTES: Final = 1 << 20
_MAX_ZIPPED_BYTES: Final = 512 << 20
MOST_ZIPPED_FILES: Final = 10_000
"""As many as code may have."""


@dataclass(frozen=True, slots=True)
class CodeSource:
    """A folder of code, with what is put beside its files."""

    folder: Path | None
    """None: all of the code is in the includes."""
    includes: tuple[Path, ...] = ()

    def files(self, leave_out: Path | None = None, rule: PathRule | None = None) -> FilesBelow:
        """Yield the files of the code.

        Args:
            leave_out: a folder that may be below it and isn't code.
            rule: what the folder and each include are checked by, once they are open.

        Raises:
            UnsafePath: a link leads out of the folder or the include that it is in, or the rule refuses one of them.
            InvalidInput: something is not there, or two files would have the same name.
        """
        owners: dict[str, str] = {}
        if self.folder is not None:
            for parts, mode, file in code_files(self.folder, leave_out, rule):
                owners[parts[0].casefold()] = "the folder of the code"
                yield parts, mode, file
        if not self.includes:
            return
        with _ignored_at_top(self.folder, rule) as ignored:
            paths: set[tuple[str, ...]] = set()
            for number, include in enumerate(self.includes):
                pointer = f"/{FIELD}/{number}"
                for parts, mode, file in _files_of(include, pointer, _Both(ignored, ignored), leave_out, rule):
                    _check_free(parts, include, pointer, owners, paths)
                    yield parts, mode, file

    def folder_of(self, file: str) -> Path | None:
        """The folder below which a file of the code is found by its path in the code: the include's, or the code's."""
        first = Path(file).parts[:1]
        return next((each.parent for each in self.includes if (each.name,) == first), self.folder)


def source_of(code: str, includes: Iterable[str] = ()) -> CodeSource:
    """The code that a job spec names, by its fields `code` and `additional_includes`; links to includes are followed,
    so that each has the name of what it is."""
    return CodeSource(Path(code) if code else None, tuple(Path(os.path.realpath(each)) for each in includes))


def is_there(include: Path) -> bool:
    """Return whether there is a file or folder to put beside the code, or a folder to make the zip of."""
    return include.exists() or _is_folder_to_zip(include)


@dataclass(frozen=True, slots=True)
class _Both:
    """Leaves out what one of two ignore files leaves out: that of the code, and that of an included folder."""

    of_code: Ignored
    of_include: Ignored
    below: str = ""
    """The place of the include in the code, with a `/`."""

    def match_file(self, file: str) -> bool:
        return self.of_code.match_file(self.below + file) or self.of_include.match_file(file)


@contextmanager
def _ignored_at_top(folder: Path | None, rule: PathRule | None) -> Iterator[Ignored]:
    if folder is None:
        yield NothingIgnored()
        return
    with opened_top(folder, "/code", rule) as top:
        yield ignored_in(top)


def _check_free(
    parts: tuple[str, ...], include: Path, pointer: str, owners: dict[str, str], paths: set[tuple[str, ...]]
) -> None:
    """Refuse a file whose place is taken: two included folders of the same name become one, files must differ."""
    if owner := owners.get(parts[0].casefold()):
        message = f"{parts[0]!r} is in {owner}, too: {include} would replace it"
        raise InvalidInput.at(pointer, message, "rename one of them, or leave this one out")
    key = tuple(part.casefold() for part in parts)
    if key in paths:
        message = f"{'/'.join(parts)!r} is in an include before this one, too"
        raise InvalidInput.at(pointer, message, "rename one of them, or leave one out")
    paths.add(key)


def _files_of(include: Path, pointer: str, ignored: _Both, leave_out: Path | None, rule: PathRule | None) -> FilesBelow:
    name = include.name
    if not name:
        raise InvalidInput.at(pointer, "the root folder can't be put into the code", "name a folder or a file in it")
    try:
        if _is_folder_to_zip(include):
            with _zip_of(include.with_suffix(""), pointer, ignored, leave_out, rule) as packed:
                yield (name,), 0o644, packed
        elif include.is_dir():
            with opened_top(include, pointer, rule) as top:
                both = replace(ignored, of_include=ignored_in(top), below=f"{name}/")
                for parts, mode, file in files_below(top, both, leave_out):
                    yield (name, *parts), mode, file
        elif not ignored.of_code.match_file(name):
            with _opened_file(include, pointer, rule) as file:
                yield (name,), os.fstat(file.fileno()).st_mode, file
    except InvalidInput as error:
        error.replace_problems(
            lambda problem: replace(problem, pointer=pointer) if problem.pointer in ("", "/code") else problem
        )
        raise


def _is_folder_to_zip(include: Path) -> bool:
    return include.suffix == _ZIP and not include.exists() and include.with_suffix("").is_dir()


@contextmanager
def _opened_file(include: Path, pointer: str, rule: PathRule | None) -> Iterator[IO[bytes]]:
    try:
        fd = os.open(include, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise InvalidInput.at(pointer, f"there is no file or folder {str(include)!r}") from error
    with open(fd, "rb") as file:
        if rule is not None:
            rule.check_opened(fd, os.fsencode(include))
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise InvalidInput.at(pointer, f"{include} is neither a file nor a folder")
        yield file


@contextmanager
def _zip_of(
    folder: Path, pointer: str, ignored: _Both, leave_out: Path | None, rule: PathRule | None
) -> Iterator[IO[bytes]]:
    """A zip of a folder, itself at its top: the same content always gives the same bytes."""
    import tempfile  # few jobs have such an include
    import zipfile

    size = 0
    with tempfile.TemporaryFile() as packed:
        with zipfile.ZipFile(packed, "w") as archive, opened_top(folder, pointer, rule) as top:
            archive.writestr(zipfile.ZipInfo(f"{folder.name}/", _SOME_DATE), b"")
            both = replace(ignored, of_include=ignored_in(top), below=f"{folder.name}/")
            for number, (parts, mode, file) in enumerate(files_below(top, both, leave_out), 1):
                _check_number(number, folder, pointer)
                member = zipfile.ZipInfo("/".join((folder.name, *parts)), _SOME_DATE)
                member.external_attr = (stat.S_IFREG | (0o755 if mode & 0o100 else 0o644)) << 16
                with archive.open(member, "w") as target:
                    while chunk := file.read(_COPY_BYTES):
                        size += len(chunk)
                        if size > _MAX_ZIPPED_BYTES:
                            message = f"{folder} has more than {_MAX_ZIPPED_BYTES >> 20} MiB"
                            raise InvalidInput.at(pointer, message, LEAVE_OUT_HINT)
                        target.write(chunk)
        packed.seek(0)
        yield packed


def _check_number(number: int, folder: Path, pointer: str) -> None:
    if number > MOST_ZIPPED_FILES:
        raise InvalidInput.at(pointer, f"{folder} has more than {MOST_ZIPPED_FILES:,} files", LEAVE_OUT_HINT)
