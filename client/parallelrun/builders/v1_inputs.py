"""Inputs of v1's steps, how their files become tables, and the error for what v1's classes have and these lack."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Self

from parallelrun.builders.parts import Input, refuse, without_none
from parallelrun.errors import InvalidInput

BY_PATH: Final = "extract_columns_from_partition_format"
_HEADERS: Final = {True: "all_files_same_headers", False: "no_header"}
_NO_UPLOADS: Final = "nodes read data where they are: name a folder that they see, as Dataset.File.from_files('/data')"
_AS_STEP: Final = "an Input with transformations: [{filter: …}] has it, see docs/tables.md"
_FIRST: Final = "as in v1, call as_dataset(), as_input() or read_delimited_files() first"
_INSTEAD: Final = {
    **dict.fromkeys(("upload", "upload_files", "upload_directory", "register_pandas_dataframe"), _NO_UPLOADS),
    **dict.fromkeys(("download", "to_path"), "the files are at the path of the dataset"),
    **dict.fromkeys(("filter", "time_after", "time_before", "time_between", "time_recent"), _AS_STEP),
    **dict.fromkeys(("as_direct", "as_named_input", "drop_columns", "keep_columns"), _FIRST),
    **dict.fromkeys(("parse_delimited_files", "parse_parquet_files"), "as in v1, call as_dataset() first"),
    "datasets": "Dataset.get_by_name(workspace, name) has each of them",
    "as_upload": "an OutputFileDatasetConfig is what a step writes",
    "publish": "a batch endpoint or a schedule runs a pipeline again",
    "random_split": "each part can be an input of its own, with take_sample or a filter",
    "register": "as_dataset().register(name) of PipelineData, register_on_complete(name) of OutputFileDatasetConfig",
    "submit": "Experiment(workspace, name).submit(pipeline), or Client().jobs.create(pipeline)",
    "to_pandas_dataframe": "run() gets the rows as DataFrames; `parallelrun data preview` shows the first ones",
}
"""What to do in place of members that samples use beside those that are here."""


def _missing(owner: type, name: str) -> AttributeError:
    if name.startswith("_"):
        return AttributeError(name)
    remedy = _INSTEAD.get(name, "see docs/from-azure-ml.md")
    return AttributeError(f"{owner.__name__.strip('_')}.{name} has no counterpart in ParallelRun ({remedy})")


class _ReportsMissing(type):
    """The kind of such classes: they are asked for members themselves, as in `Dataset.File.upload_directory`."""

    if not TYPE_CHECKING:  # a checker of types reports what is missing by itself

        def __getattr__(cls, name: str) -> Any:
            raise _missing(cls, name)


class ReportsMissing(metaclass=_ReportsMissing):
    """A class of v1, with those of its members that public samples use."""

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            raise _missing(type(self), name)


@dataclass(frozen=True)
class PipelineParameter:
    """A named value of a pipeline: its default, unless another one is given when the pipeline is submitted."""

    name: str
    default_value: Any


@dataclass
class DatasetInput(Input, ReportsMissing):
    """An input with the methods of v1's datasets; each returns a copy, and those of columns and rows need a table."""

    parameter: PipelineParameter | None = None
    """The parameter of the pipeline that names the data; None: they are those of `path`."""

    def as_mount(self, path_on_compute: str | None = None) -> Self:
        """Return this input, read where it is.

        Args:
            path_on_compute: no effect: the script gets the path as an argument.
        """
        return replace(self, mode="ro_mount")

    def as_download(self, path_on_compute: str | None = None, overwrite: bool = False) -> Self:
        """Return this input, copied to the node's own disk first.

        Args:
            path_on_compute, overwrite: no effect: the script gets the path of a folder of its own as an argument.
        """
        return replace(self, mode="download")

    def as_direct(self) -> Self:
        """Return this input, read where it is: `run()` gets its rows, or the paths of its files."""
        return replace(self, mode="direct")

    def keep_columns(self, columns: str | Sequence[str], validate: bool = False) -> Self:
        """Return this table with these columns alone.

        Args:
            validate: no effect: names that no column has are ignored.
        """
        return self._followed_by("keep_columns", columns)

    def drop_columns(self, columns: str | Sequence[str]) -> Self:
        """Return this table without these columns."""
        return self._followed_by("drop_columns", columns)

    def take(self, count: int) -> Self:
        """Return the first rows of this table."""
        return self._followed_by("take", count)

    def skip(self, count: int) -> Self:
        """Return this table without its first rows."""
        return self._followed_by("skip", count)

    def take_sample(self, probability: float, seed: int | None = None) -> Self:
        """Return a part of the rows of this table, each with this probability from 0 to 1."""
        return self._followed_by("take_random_sample", without_none({"probability": probability, "seed": seed}))

    def _followed_by(self, step: str, options: Any) -> Self:
        options = list(options) if isinstance(options, tuple) else options
        return replace(self, transformations=[*(self.transformations or []), {step: options}])


def kind_of_header(header: Any) -> str | None:
    """Return the `header` of `read_delimited` for that of v1: True, False, the name of a kind, or None.

    Raises:
        InvalidInput: it is something else.
    """
    if not isinstance(header, bool | str | None):
        hint = "docs/tables.md has the names"
        raise InvalidInput.at("/header", f"True, False or the name of a kind, not {header!r}", hint)
    return _HEADERS[header] if isinstance(header, bool) else header


def steps_by_path(partition_format: str | None) -> list[Any]:
    """Return the transformations that make columns of the paths of files; none without a format."""
    return [{BY_PATH: partition_format}] if partition_format else []


def read_steps(step: str, options: dict[str, Any], partition_format: str | None, column_types: Any) -> list[Any]:
    """Return the transformations that read files as a table.

    Args:
        step: the name of the read step (docs/tables.md).
        options: its options; those that are None are left out.

    Raises:
        InvalidInput: column types are given, which are a transformation of their own.
    """
    hint = "an Input with transformations: [{convert_column_types: …}] has them (docs/tables.md)"
    refuse(hint, set_column_types=column_types)
    set_options = without_none(options)
    return [{step: set_options} if set_options else step, *steps_by_path(partition_format)]
