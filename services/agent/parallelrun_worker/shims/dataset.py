"""`Dataset`: the inputs of a job as objects of Azure ML's first SDK."""

from __future__ import annotations

import os
import shutil
from typing import Any

from parallelrun_worker.shims.job import input_called, not_here


class Dataset:
    """An input of the job.

    Attributes:
        name: that of the input.
        path: where it is on this node.
    """

    def __init__(self, name: str, path: str) -> None:
        self.name = name
        self.path = path
        self.id = name
        self.version = 1
        self.tags: dict[str, Any] = {}

    @classmethod
    def get_by_name(cls, workspace: Any, name: str, version: Any = "latest") -> Dataset:
        """The input of this name: what a script reads is an input of its job.

        Raises:
            KeyError: the job has none of this name; says which it has.
        """
        return cls(name, str(input_called(name)))

    @classmethod
    def get_by_id(cls, workspace: Any, id: str, **_: Any) -> Dataset:
        return cls.get_by_name(workspace, id)

    def to_path(self) -> list[str]:
        """Its files."""
        if not os.path.isdir(self.path):
            return [self.path]
        return sorted(os.path.join(folder, each) for folder, _, files in os.walk(self.path) for each in files)

    def as_named_input(self, name: str) -> Dataset:
        return Dataset(name, self.path)

    def mount(self, mount_point: str | None = None, **_: Any) -> Mounted:
        """Mount a dataset, which is on the node already; `mount_point` becomes a link to it."""
        return Mounted(self.path, mount_point)

    as_mount = as_download = mount

    def download(self, target_path: str | None = None, overwrite: bool = False, **_: Any) -> list[str]:
        """Copy its files into a folder, or without one, give those that are there."""
        if target_path is None:
            return self.to_path()
        copies = []
        for path in self.to_path():
            inside = os.path.relpath(path, self.path) if os.path.isdir(self.path) else os.path.basename(path)
            copies.append(os.path.join(target_path, inside))
            if overwrite or not os.path.exists(copies[-1]):
                os.makedirs(os.path.dirname(copies[-1]), exist_ok=True)
                shutil.copyfile(path, copies[-1])
        return copies

    def to_pandas_dataframe(self, **_: Any) -> Any:
        """Its rows, by the ends of its files' names: JSON lines, Parquet, Avro; any other is read as CSV."""
        import pandas

        from parallelrun_worker.tables.formats import read_file

        tables = [read_file(path) for path in self.to_path()]
        return pandas.concat(tables, ignore_index=True) if len(tables) != 1 else tables[0]

    def __fspath__(self) -> str:
        return self.path

    def __str__(self) -> str:
        return self.path

    def register(self, *_: Any, **_named: Any) -> Any:
        raise not_here("Dataset.register", "register data with `parallelrun data create`")

    class File:
        """Data sets of files."""

        @staticmethod
        def from_files(path: Any, **_: Any) -> Dataset:
            return _local(path)

    class Tabular:
        """Data sets of rows."""

        @staticmethod
        def from_delimited_files(path: Any, **_: Any) -> Dataset:
            return _local(path)

        from_parquet_files = from_json_lines_files = from_delimited_files


class Mounted:
    """A data set in the file system."""

    def __init__(self, path: str, mount_point: str | None) -> None:
        self.mount_point = path
        if mount_point and os.path.abspath(mount_point) != os.path.abspath(path):
            os.makedirs(os.path.dirname(os.path.abspath(mount_point)), exist_ok=True)
            if not os.path.lexists(mount_point):
                os.symlink(path, mount_point)  # noqa: PTH211 - pathlib takes longer to import than all of this
            self.mount_point = mount_point

    def start(self) -> None:
        """Nothing: it is there."""

    def stop(self) -> None:
        """Nothing: it stays there."""

    def __enter__(self) -> Mounted:
        return self

    def __exit__(self, *_: object) -> None:
        return

    def __fspath__(self) -> str:
        return self.mount_point


def _local(path: Any) -> Dataset:
    if isinstance(path, (str, os.PathLike)) and os.path.exists(path):
        return Dataset(os.path.basename(os.fspath(path)), os.fspath(path))
    raise not_here(f"a data set of {path!r}", "only local paths that exist can be read; make data an input of the job")
