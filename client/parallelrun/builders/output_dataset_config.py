"""`OutputFileDatasetConfig` of v1: what a step of a pipeline writes, and the tables that others read of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from os import PathLike, fspath
from typing import Any, ClassVar, Final, Never, Self

from parallelrun.builders.parts import refuse
from parallelrun.builders.step_data import (
    OUTPUT_NAME,
    RUN_ID,
    WRITE_IN_PLACE,
    StepData,
    StepDataInput,
    required_name,
)
from parallelrun.builders.v1_inputs import checked_text, delimited_steps, parquet_steps
from parallelrun.errors import InvalidInput

_ALL_FILES: Final = "all files of the folder count: let the step write no others into it"
_AS_INPUT_FIRST: Final = "call as_input() first: this is what the step writes"
_AS_TABLE_FIRST: Final = "call read_delimited_files() or read_parquet_files() first"


class OutputFileDatasetConfig(StepData):
    """v1's `OutputFileDatasetConfig`: an output of the step that names it; `as_input()` is the input of another one.

    Args:
        destination: a path, or a pair of a datastore and a path in it; `{output-name}` in it is the name of the output,
            and `{run-id}` that of the job. Without a path: `{run-id}/{output-name}`.

    Raises:
        InvalidInput: the destination is neither, another folder is given as the `source` of an upload, or a
            `partition_format`, which belongs to the step that reads.
    """

    INSTEAD: ClassVar = {
        **dict.fromkeys(("as_direct", "as_download", "as_named_input"), _AS_INPUT_FIRST),
        **dict.fromkeys(("as_dataset", "parse_delimited_files", "parse_parquet_files"), _AS_TABLE_FIRST),
        **dict.fromkeys(("drop_columns", "keep_columns", "random_split"), _AS_TABLE_FIRST),
        "register": "register_on_complete(name) does it",
    }

    def __init__(
        self, name: str | None = None, destination: Any = None, source: Any = None, partition_format: str | None = None
    ) -> None:
        refuse(WRITE_IN_PLACE, source=source)
        refuse("give it to read_delimited_files or read_parquet_files", partition_format=partition_format)
        super().__init__(name, _path_of(destination))

    def as_upload(self, overwrite: bool = False, source_globs: str | Sequence[str] | None = None) -> Self:
        """Return this output unchanged: it is written to its destination anyway.

        Args:
            overwrite: no effect.

        Raises:
            InvalidInput: globs are given; what the step writes is all there.
        """
        refuse(_ALL_FILES, source_globs=source_globs)
        return self

    def as_mount(self, disable_metadata_cache: bool = False) -> Self:
        """Return this output unchanged: it is written to its destination anyway.

        Args:
            disable_metadata_cache: no effect.
        """
        return self

    def register_on_complete(
        self, name: str, description: str | None = None, tags: dict[str, str] | None = None
    ) -> Self:
        """Return this output itself; it becomes data of this name when its step has completed. The last name counts.

        Args:
            description, tags: no effect: the version says which job has made it.
        """
        self.asset_name = required_name(name)
        return self

    def read_delimited_files(  # noqa: PLR0917 - v1 has this order
        self,
        include_path: bool = False,
        separator: str = ",",
        header: bool | str = True,
        partition_format: str | None = None,
        path_glob: str | None = None,
        set_column_types: Any = None,
    ) -> OutputTabularDatasetConfig:
        """Return this output, which steps that have it as an input get as a table of delimited text, all values text.

        Args:
            header: True, False, or a kind of header of `read_delimited` (docs/tables.md).

        Raises:
            InvalidInput: an argument is wrong, or a glob or column types are given: all files are read.
        """
        refuse(_ALL_FILES, path_glob=path_glob)
        steps = delimited_steps(include_path, separator, header, partition_format, set_column_types)
        return OutputTabularDatasetConfig(name=self.output_name or None, data=self, transformations=steps)

    def read_parquet_files(
        self,
        include_path: bool = False,
        partition_format: str | None = None,
        path_glob: str | None = None,
        set_column_types: Any = None,
    ) -> OutputTabularDatasetConfig:
        """Return this output, which the steps that have it as an input get as a table of Parquet files.

        Raises:
            InvalidInput: an argument is wrong, or a glob or column types are given: all files are read.
        """
        refuse(_ALL_FILES, path_glob=path_glob)
        steps = parquet_steps(include_path, partition_format, set_column_types)
        return OutputTabularDatasetConfig(name=self.output_name or None, data=self, transformations=steps)


@dataclass
class OutputTabularDatasetConfig(StepDataInput):
    """v1's `OutputTabularDatasetConfig`: an output of the step that names it; `as_input()` is the table for others."""

    INSTEAD: ClassVar = {"register": "register_on_complete(name) does it"}

    data: OutputFileDatasetConfig = field(kw_only=True)

    def as_mount(self, path_on_compute: str | None = None) -> Self:
        """Return this output unchanged: it is written to its destination anyway.

        Args:
            path_on_compute: no effect.
        """
        return self

    def _refuse_as_input(self, *arguments: Any, **options: Any) -> Never:
        """Refuse, as what is read in a way is an input, and this is an output. Raises InvalidInput."""
        raise InvalidInput.at("", "this is no input", _AS_INPUT_FIRST)

    as_direct = as_download = as_named_input = _refuse_as_input

    def as_upload(self, overwrite: bool = False, source_globs: str | Sequence[str] | None = None) -> Self:
        """Return this output unchanged, or refuse globs, as `OutputFileDatasetConfig.as_upload` does."""
        self.data.as_upload(overwrite, source_globs)
        return self

    def register_on_complete(
        self, name: str, description: str | None = None, tags: dict[str, str] | None = None
    ) -> Self:
        """Return this output itself; its files, as files, become data of this name when its step has completed."""
        self.data.register_on_complete(name, description, tags)
        return self


def _path_of(destination: Any) -> str | None:
    if destination is None:
        return None
    if isinstance(destination, str | PathLike):
        return checked_text(fspath(destination), "/destination")
    hint = "as in (datastore, 'a/folder')"
    if not isinstance(destination, tuple | list) or not 1 <= len(destination) <= 2:
        message = f"a path, or a pair of a datastore and a path in it, and no {type(destination).__name__}"
        raise InvalidInput.at("/destination", message, hint)
    from parallelrun_core.storage.location import in_datastore

    datastore, path = (*destination, None)[:2]
    datastore_name = getattr(datastore, "name", datastore)
    if not datastore_name or not isinstance(datastore_name, str) or isinstance(datastore, PathLike | StepData):
        message = f"a datastore or its name comes first, and no {type(datastore).__name__}"
        raise InvalidInput.at("/destination", message, hint)
    path_in_it = f"{RUN_ID}/{OUTPUT_NAME}" if path in (None, "") else path
    if not isinstance(path_in_it, str | int | PathLike):
        raise InvalidInput.at("/destination", f"a path in the datastore, and no {type(path).__name__}", hint)
    return checked_text(in_datastore(datastore_name, str(path_in_it).strip("/")), "/destination")
