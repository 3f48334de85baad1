"""Inputs of v1's steps, and how their files become tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final, Self

from parallelrun.builders.missing import ReportsMissing
from parallelrun.builders.parts import Input, several, without_none
from parallelrun.errors import InvalidInput

BY_PATH: Final = "extract_columns_from_partition_format"
IN_TEXT: Final = "$AZUREML_DATAREFERENCE_"
"""How data and parameters begin that were made text, as data in v1; no worker replaces it."""
MOUNT: Final = "ro_mount"
"""The mode of an input that names none: it is read where it is."""
_OF_V1: Final = {
    "separator": "delimiter", "include_path": "include_path_column", "quoted_line_breaks": "support_multi_line",
}  # fmt: skip
"""Options of read steps by their names in v1, where these are others."""
_HEADERS: Final = {True: "all_files_same_headers", False: "no_header"}
_AS_STEP: Final = "an Input with transformations: [{filter: …}] has it, see docs/tables.md"
_TYPES: Final = "[{'columns': 'a', 'column_type': 'int'}]"
_READ_FIRST: Final = "tables come of methods from_…, parse_… and read_…, such as Dataset.Tabular.from_parquet_files"


@dataclass(frozen=True)
class PipelineParameter:
    """A named value of a pipeline: its default, unless another one is given when the pipeline is submitted."""

    name: str
    default_value: Any

    def __str__(self) -> str:
        """Return text that no step accepts as a part of an argument: parameters are arguments of their own."""
        return f"{IN_TEXT}{self.name}"


@dataclass
class DatasetInput(Input, ReportsMissing):
    """An input with the methods of v1's datasets; each returns a copy.

    Those of columns and rows raise InvalidInput where there is no table, where what they are told makes no sense, and
    where a parameter of the pipeline names the data: they belong to the dataset that is its value.
    """

    INSTEAD: ClassVar = {
        **dict.fromkeys(("download", "to_path"), "the files are at the path of the dataset"),
        **dict.fromkeys(("filter", "time_after", "time_before", "time_between", "time_recent"), _AS_STEP),
        "random_split": "each part can be an input of its own, with take_sample or a filter",
        "to_pandas_dataframe": "run() gets the rows as DataFrames; `parallelrun data preview` shows the first ones",
    }

    parameter: PipelineParameter | None = None
    """The parameter of the pipeline that names the data; None: they are those of `path`."""

    def __str__(self) -> str:
        """Return text that no step accepts as a part of an argument: data are arguments of their own."""
        return f"{IN_TEXT}{self.name or ''}"

    def as_mount(self, path_on_compute: str | None = None) -> Self:
        """Return this input, read where it is.

        Args:
            path_on_compute: no effect: the script gets the path as an argument.
        """
        return replace(self, mode=MOUNT)

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
        return self._followed_by("keep_columns", _names(columns), "/columns")

    def drop_columns(self, columns: str | Sequence[str]) -> Self:
        """Return this table without these columns."""
        return self._followed_by("drop_columns", _names(columns), "/columns")

    def take(self, count: int) -> Self:
        """Return the first rows of this table."""
        return self._followed_by("take", count, "/count")

    def skip(self, count: int) -> Self:
        """Return this table without its first rows."""
        return self._followed_by("skip", count, "/count")

    def take_sample(self, probability: float, seed: int | None = None) -> Self:
        """Return a part of the rows of this table, each with this probability from 0 to 1."""
        return self._followed_by("take_random_sample", without_none({"probability": probability, "seed": seed}))

    def _followed_by(self, step: str, options: Any, pointer: str = "") -> Self:
        """This table with another step; `pointer` is that of the argument which are the options, for errors."""
        from parallelrun_core.mltable.steps import parse_steps
        from parallelrun_core.problems import At, Problems

        if self.parameter is not None:
            hint = "say it of the dataset before that becomes the parameter's value"
            raise InvalidInput.at("", f"the pipeline's parameter {self.parameter.name!r} names the data", hint)
        if not is_table(self.transformations):
            raise InvalidInput.at("", "only a table has columns and rows, and these are files", _READ_FIRST)
        steps = [*(self.transformations or []), {step: options}]
        problems = Problems()
        parse_steps(steps, At("", problems))
        of_step = f"/{len(steps) - 1}/{step}"
        Problems([replace(each, pointer=each.pointer.replace(of_step, pointer)) for each in problems.problems]).check()
        return replace(self, transformations=steps)


def _names(columns: str | Sequence[str]) -> str | list[str]:
    return columns if isinstance(columns, str) else several(columns, "/columns")


def checked_text(text: str, pointer: str) -> str:
    """Return this text. Raises InvalidInput if data or a parameter are a part of it: nothing puts their value there."""
    if IN_TEXT in text:
        hint = "give it by itself, as in arguments=['--out', data]"
        raise InvalidInput.at(pointer, f"data, or a parameter, became a part of the text {text!r}", hint)
    return text


def is_table(transformations: Sequence[Any] | None) -> bool:
    """Return whether a step of v1's data reads the files: one that only takes columns from their paths doesn't."""
    return any(BY_PATH not in step for step in transformations or [])


def steps_by_path(partition_format: str | None) -> list[Any]:
    """Return the transformations that make columns of the paths of files; none without a format.

    Raises:
        InvalidInput: it is no such format.
    """
    from parallelrun_core.mltable.steps import ExtractColumns
    from parallelrun_core.problems import At, Problems

    if not partition_format:
        return []
    problems = Problems()
    ExtractColumns.parse(partition_format, At("", problems))
    problems.check()
    return [{BY_PATH: partition_format}]


def read_steps(step: str, options: dict[str, Any], partition_format: str | None, column_types: Any) -> list[Any]:
    """Return the transformations that read files as a table.

    Args:
        step: the name of the read step (docs/tables.md).
        options: its options, by their names here or in v1; those that are None are left out. A `header` may be True or
            False, as in v1.
        partition_format: that of the files' paths, of which columns are made, or None; they need no column of paths.

    Raises:
        InvalidInput: an option or the format is wrong, or column types are given, which are a step of their own.
    """
    from parallelrun_core.mltable import formats
    from parallelrun_core.problems import At, Problems

    if column_types:
        hint = f"an Input with transformations=[{step!r}, {{'convert_column_types': {_TYPES}}}] has them"
        raise InvalidInput.at("/set_column_types", "column types are a step of their own", hint)
    set_options = without_none({_OF_V1.get(name, name): value for name, value in options.items()})
    if isinstance(header := set_options.get("header"), bool):
        set_options["header"] = _HEADERS[header]
    by_path = steps_by_path(partition_format)
    if by_path and not set_options.get("include_path_column"):
        set_options["include_path_column"] = True  # without it, nothing is left that the format could match
        by_path.append({"drop_columns": "Path"})
    problems = Problems()
    formats.read_steps()[step].parse(set_options, At("", problems))
    pointers = {f"/{_OF_V1[name]}": f"/{name}" for name in options if name in _OF_V1}
    Problems([replace(each, pointer=pointers.get(each.pointer, each.pointer)) for each in problems.problems]).check()
    return [{step: set_options} if set_options else step, *by_path]


def delimited_steps(
    include_path: bool, separator: str, header: Any, partition_format: str | None, column_types: Any, **options: Any
) -> list[Any]:
    """Return `read_steps` of delimited text for arguments of v1 that converts no values, unlike `from_delimited_files`.

    Args:
        options: others of `read_delimited`, by their names here or in v1.
    """
    options |= {
        "infer_column_types": False,
        "include_path": include_path or None,
        "separator": None if separator == "," else separator,
        "header": None if header is True else header,
    }
    return read_steps("read_delimited", options, partition_format, column_types)


def parquet_steps(
    include_path: bool, partition_format: str | None, column_types: Any, file_extension: str | None = None
) -> list[Any]:
    """Return `read_steps` of Parquet files for arguments of v1; those that have their default are left out."""
    options = {"include_path": include_path or None, "file_extension": file_extension}
    return read_steps("read_parquet", options, partition_format, column_types)
