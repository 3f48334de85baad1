"""The files of one version of a Delta table: Parquet files, with the values of its partition columns in their paths.

The library `deltalake` reads the table's log; it is imported when there is such a table. The version is fixed when the
job begins.
"""

from __future__ import annotations

import os
from base64 import b64encode
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

import msgspec

from parallelrun_core.errors import InvalidInput
from parallelrun_core.mltable.formats.delta_lake import ReadDeltaLake
from parallelrun_core.mltable.input_plan import InputPlan
from parallelrun_core.storage.location import is_url
from parallelrun_core.storage.path_rule import PathRule
from parallelrun_core.storage.stores import storage_of
from parallelrun_master.planning.formats import delta_log, parquet

_MAPPING: Final = "delta.columnMapping.mode"
_UNDERSTOOD: Final = frozenset({"timestampNtz"})
"""Features that a table may require of its readers, and that need no more than reading its files."""


class DeltaLakeCutting(parquet.ParquetCutting):
    """Its files are cut like others."""

    @staticmethod
    def prepare(plan: InputPlan, rule: PathRule | None = None) -> None:
        """Put the version that is read, and its columns, into the plan.

        Raises:
            InvalidInput: there is no such table or version, or it needs more than reading its files.
        """
        with _opened(plan, rule) as table:
            _fix_version(plan, table)

    @staticmethod
    def files(plan: InputPlan, rule: PathRule | None = None) -> Iterator[bytes] | None:
        """Yield the files of the version that was fixed, in the order of their paths."""
        with _opened(plan, rule) as table:
            return (os.fsencode(path) for path in sorted(table.paths()))

    def columns_read(self, names: list[str]) -> list[str]:
        return names


class _Table(NamedTuple):
    library: Any
    """The table as `deltalake` has it."""
    folder: str
    opened: str
    """The folder that the library knows: the same one, or what stands for it on this disk."""

    def paths(self) -> list[str]:
        """The files of this version, as the storage of the folder names them."""
        paths = [path.removeprefix("file://") for path in self.library.file_uris()]
        if self.opened == self.folder:
            return paths
        here = self.opened.rstrip("/") + "/"
        return [
            f"{self.folder.rstrip('/')}/{path.removeprefix(here)}" if path.startswith(here) else path for path in paths
        ]


def _fix_version(plan: InputPlan, opened: _Table) -> None:
    table = opened.library
    unsupported = set(getattr(table.protocol(), "reader_features", None) or ()) - _UNDERSTOOD
    if table.metadata().configuration.get(_MAPPING, "none") != "none":
        unsupported.add("columnMapping")  # tables from before there were features don't list it
    if unsupported:
        features = ", ".join(sorted(unsupported))
        raise InvalidInput(f"{_folder(plan)}: this Delta table can't be read by its files alone, it uses {features}")
    types = {field.name: str(getattr(field.type, "type", "")) for field in table.schema().fields}
    partitions = {name: types[name] for name in table.metadata().partition_columns}
    plan.root = _folder(plan)
    _check_paths(opened, partitions)
    plan.read = msgspec.structs.replace(
        _read(plan), version=table.version(), columns=list(types), partitions=partitions, schema=_schema(table)
    )


def _check_paths(table: _Table, partitions: Iterable[str]) -> None:
    """Workers take the values of partition columns from the paths, where writers put them unless told otherwise."""
    for path in table.paths() if partitions else ():
        below = path.removeprefix(table.folder)
        missing = set(partitions) - {unquote(part.partition("=")[0]) for part in below.split("/") if "=" in part}
        if missing:
            names = ", ".join(sorted(missing))
            raise InvalidInput(
                f"{table.folder}: this Delta table can't be read: values of {names} are not in the path of {path}"
            )


def _schema(table: Any) -> str:
    """The Arrow schema of all columns, as text: an older file may lack some."""
    try:
        import pyarrow as pa
    except ImportError:
        return ""  # that is reported when the files are cut
    return b64encode(pa.schema(table.schema().to_arrow()).serialize().to_pybytes()).decode()


def _read(plan: InputPlan) -> ReadDeltaLake:
    assert isinstance(plan.read, ReadDeltaLake)  # noqa: S101 - for the type checker
    return plan.read


def _folder(plan: InputPlan) -> str:
    if len(plan.sources) > 1:
        raise InvalidInput("a Delta table is one folder, and the MLTable names several paths")
    return plan.sources[0].path if plan.sources else plan.path


@contextmanager
def _opened(plan: InputPlan, rule: PathRule | None) -> Iterator[_Table]:
    """The version that a plan asks for, or that was fixed in it."""
    try:
        import deltalake
    except ImportError as error:
        message = "a Delta table is read with the library deltalake, which is not installed where the master runs"
        raise InvalidInput(message) from error
    folder, read = _folder(plan), _read(plan)
    with _on_this_disk(folder, rule, read) as here:
        try:
            library = _load(deltalake, here, read)
        except Exception as error:  # of its own types, which change with its versions
            reason = str(error).replace(here, folder)
            raise InvalidInput(f"{folder}: not a Delta table, or not one of its versions: {reason}") from error
        yield _Table(library, folder, here)


@contextmanager
def _on_this_disk(folder: str, rule: PathRule | None, read: ReadDeltaLake) -> Iterator[str]:
    if is_url(folder):
        with delta_log.copied(folder, rule, read.version) as here:
            yield here
        return
    if rule is not None:
        _check_log(folder, rule)
    yield folder


def _load(deltalake: Any, folder: str, read: ReadDeltaLake) -> Any:
    table = deltalake.DeltaTable(folder, version=read.version)
    if read.version is None:
        table.load_as_version(datetime.fromisoformat(str(read.timestamp)))
    return table


def _check_log(folder: str, rule: PathRule) -> None:
    """Check the files of a table's log, which the library opens by itself. Whether there is one, it finds out itself.

    Raises:
        InvalidInput: the rule refuses one of them, or one is no file that can be read to its end.
    """
    log = f"{folder}/{delta_log.LOG}"
    with suppress(OSError):
        deque(storage_of(log).files(log, rule=rule), maxlen=0)
    with suppress(OSError), os.scandir(log) as entries:
        for entry in entries:
            if not entry.is_dir():
                delta_log.check_size(folder, entry.name, entry.stat().st_size if entry.is_file() else None)
