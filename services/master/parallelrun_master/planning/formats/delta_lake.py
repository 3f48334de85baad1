"""The files of one version of a Delta table: Parquet files, with the values of its partition columns in their paths.

The library `deltalake` reads the table's log; it is imported when there is such a table. The version is fixed when the
job begins.
"""

from __future__ import annotations

import os
from base64 import b64encode
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import Any, Final
from urllib.parse import unquote

import msgspec

from parallelrun_core.errors import InvalidInput
from parallelrun_core.mltable.formats.delta_lake import Read
from parallelrun_core.mltable.plan import InputPlan
from parallelrun_core.path_rule import PathRule
from parallelrun_core.storage.location import datastore_of, is_url
from parallelrun_core.storage.objects.asking import asking
from parallelrun_core.storage.stores import storage_of
from parallelrun_master.planning.formats import parquet

_LOG: Final = "_delta_log"
_MAPPING: Final = "delta.columnMapping.mode"
_UNDERSTOOD: Final = frozenset({"timestampNtz"})
"""Features that a table may require of its readers, and that need no more than reading its files."""


class Format(parquet.Format):
    """Its files are cut like others."""

    @staticmethod
    def prepare(plan: InputPlan, rule: PathRule | None = None) -> None:
        """Put the version that is read, and its columns, into the plan.

        Raises:
            InvalidInput: there is no such table or version, or it needs more than reading its files.
        """
        _fix_version(plan, rule)

    @staticmethod
    def files(plan: InputPlan, rule: PathRule | None = None) -> Iterator[bytes] | None:
        """Those of the version that was fixed, in the order of their paths."""
        return (os.fsencode(path) for path in sorted(_paths(_open(plan, rule), _folder(plan))))

    def columns_read(self, names: list[str]) -> list[str]:
        """See the base."""
        return names


def _paths(table: Any, folder: str) -> list[str]:
    """The files of a table, as this folder's storage names them."""
    if is_url(folder):
        root = table.table_uri.rstrip("/")  # in a spelling of the library's own
        paths = [path.removeprefix(root) for path in table.file_uris()]
        return [folder.rstrip("/") + path if path.startswith("/") else path for path in paths]
    return [path.removeprefix("file://") for path in table.file_uris()]


def _fix_version(plan: InputPlan, rule: PathRule | None) -> None:
    table = _open(plan, rule)
    wanted = set(getattr(table.protocol(), "reader_features", None) or ()) - _UNDERSTOOD
    if table.metadata().configuration.get(_MAPPING, "none") != "none":
        wanted.add("columnMapping")  # tables from before there were features don't list it
    if wanted:
        features = ", ".join(sorted(wanted))
        raise InvalidInput(f"{_folder(plan)}: this Delta table can't be read by its files alone, it uses {features}")
    types = {field.name: str(getattr(field.type, "type", "")) for field in table.schema().fields}
    partitions = {name: types[name] for name in table.metadata().partition_columns}
    plan.root = _folder(plan)
    _check_paths(table, plan.root, partitions)
    plan.read = msgspec.structs.replace(
        _read(plan), version=table.version(), columns=list(types), partitions=partitions, schema=_schema(table)
    )


def _check_paths(table: Any, root: str, partitions: Iterable[str]) -> None:
    """Workers take the values of partition columns from the paths, where writers put them unless told otherwise."""
    for path in _paths(table, root) if partitions else ():
        below = path.removeprefix(root)
        missing = set(partitions) - {unquote(part.partition("=")[0]) for part in below.split("/") if "=" in part}
        if missing:
            names = ", ".join(sorted(missing))
            raise InvalidInput(
                f"{root}: this Delta table can't be read: values of {names} are not in the path of {path}"
            )


def _schema(table: Any) -> str:
    """The Arrow schema of all columns, as text: an older file may lack some."""
    try:
        import pyarrow as pa
    except ImportError:
        return ""  # that is reported when the files are cut
    return b64encode(pa.schema(table.schema().to_arrow()).serialize().to_pybytes()).decode()


def _read(plan: InputPlan) -> Read:
    assert isinstance(plan.read, Read)  # noqa: S101 - for the type checker
    return plan.read


def _folder(plan: InputPlan) -> str:
    if len(plan.sources) > 1:
        raise InvalidInput("a Delta table is one folder, and the MLTable names several paths")
    return plan.sources[0].path if plan.sources else plan.path


def _open(plan: InputPlan, rule: PathRule | None) -> Any:
    read = _read(plan)
    try:
        import deltalake
    except ImportError as error:
        message = "a Delta table is read with the library deltalake, which is not installed where the master runs"
        raise InvalidInput(message) from error
    folder = _folder(plan)
    if datastore_of(folder):
        raise InvalidInput(
            f"{folder}: a Delta table can't be read through a datastore yet: give its own address, as in "
            "s3://bucket/table, and the master credentials for it in its environment"
        )
    if rule is not None:
        _check_log(folder, rule)
    try:
        address, options = storage_of(folder).for_engines(folder)
        load = partial(_load, deltalake, address, options, read)
        table = asking(load) if is_url(folder) else load()
    except Exception as error:  # of its own types, which change with its versions
        if is_url(folder):
            storage_of(folder).is_folder(folder)  # raises what is wrong with the store, if that is it
        raise InvalidInput(f"{folder}: not a Delta table, or not one of its versions: {error}") from error
    return table


def _load(deltalake: Any, address: str, options: dict[str, str], read: Read) -> Any:
    table = deltalake.DeltaTable(address, version=read.version, storage_options=options or None)
    if read.version is None:
        table.load_as_version(datetime.fromisoformat(str(read.timestamp)))
    return table


def _check_log(folder: str, rule: PathRule) -> None:
    """Check the files of a table's log, which the library opens by itself. Whether there is one, it finds out itself.

    Raises:
        InvalidInput: the rule refuses one of them.
    """
    log = f"{folder}/{_LOG}"
    with suppress(OSError):
        deque(storage_of(log).files(log, rule=rule), maxlen=0)
