"""Data between the steps of a v1 pipeline: `PipelineData`, and what reads them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, Self

from parallelrun.builders.missing import ReportsMissing
from parallelrun.builders.parts import refuse, without_none
from parallelrun.builders.v1_inputs import IN_TEXT, DatasetInput, delimited_steps, parquet_steps
from parallelrun.errors import InvalidInput

_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9_]")
OUTPUT_NAME: Final = "{output-name}"
RUN_ID: Final = "{run-id}"
_EXTENSIONS: Final = {None: ".csv", ",": ".csv", "\t": ".tsv"}
"""The extension of the delimited files that v1 reads when it is told none, by their separator."""
WRITE_IN_PLACE: Final = "the script writes into the folder that it gets as an argument"
_AS_ARGUMENT: Final = "give the data by themselves as an argument of the script"
_AS_DATASET_FIRST: Final = "call as_dataset() first"
_PARSE_FIRST: Final = "call as_dataset().parse_delimited_files() or parse_parquet_files()"


class StepData(ReportsMissing):
    """A folder or file that one step of a pipeline writes, and others may read: the base of v1's two classes of them.

    Args:
        name: that of the data and of the output; without one, the step that writes it numbers its outputs (`output_0`).
        path: the place of the output; by default, among the outputs of the step. `{output-name}` in it stands for the
            name of the output, and `{run-id}` for that of the job.
        type: `uri_folder` or `uri_file`.

    Raises:
        InvalidInput: the name is no text.
    """

    def __init__(self, name: str | None = None, path: str | None = None, type: str = "uri_folder") -> None:
        first: object = name  # which may be the destination by mistake
        if not isinstance(first, str | None):
            hint = "the name comes first, as in OutputFileDatasetConfig('prepared', destination)"
            raise InvalidInput.at("/name", f"{first.__class__.__name__} is no name", hint)
        self.name = name or ""
        self.path = path
        self.type = type
        self.asset_name: str | None = None
        """The name of the data that it becomes a version of when its step has completed; None: of none."""
        self.writer: object | None = None
        """The step that writes it, of several the latest, as of a cell of a notebook that runs again; None: no step."""

    def __str__(self) -> str:
        """Return text that no step accepts as a part of an argument: data are arguments of their own."""
        return f"{IN_TEXT}{self.name}"

    @property
    def output_name(self) -> str:
        """The name of the output, as an output of a job can have it; empty if there is none."""
        return _fit(self.name)

    @property
    def input_name(self) -> str:
        """The name of the input of a step that gives it none; empty if the data have none."""
        return _fit(self.name)

    def fields(self, output_name: str) -> dict[str, Any]:
        """Return the fields of the output as in a job file.

        Args:
            output_name: the name under which its step has it.
        """
        path = self.path.replace(OUTPUT_NAME, output_name).replace(RUN_ID, "${{name}}") if self.path else None
        asset = None if self.asset_name is None else {"name": self.asset_name}
        return without_none({"type": self.type, "path": path, "asset": asset})

    def as_input(self, name: str | None = None) -> StepDataInput:
        """Return these data as an input of another step; without a name, it has that of the data."""
        return StepDataInput(name=name or self.input_name or None, data=self)


@dataclass
class StepDataInput(DatasetInput):
    """An input of a step that another step writes, and how this one reads it."""

    INSTEAD: ClassVar = {"as_upload": "an OutputFileDatasetConfig is what a step writes"}

    data: StepData = field(kw_only=True)

    def as_input(self, name: str | None = None) -> StepDataInput:
        """Return this as an input and no output, with this name if one is given."""
        return StepDataInput(**{**vars(self), "name": name or self.name})


class PipelineOutputAbstractDataset(StepDataInput):
    """A `PipelineData` as a dataset: the base of v1's classes for files and for tables.

    A step that has it in `outputs` or as `output` writes the data, and one that has it in `inputs` reads them.
    """

    def register(self, name: str, create_new_version: bool = True) -> Self:
        """Return this dataset itself; its data become data of this name when the step that writes them has completed.

        That goes for all that was made of the same `PipelineData`; of several names, the last one counts.

        Args:
            create_new_version: no effect: what a step has written is a new version.
        """
        self.data.asset_name = required_name(name)
        return self


class PipelineOutputFileDataset(PipelineOutputAbstractDataset):
    """A `PipelineData` as files, which its methods make a table of, for the steps that read it."""

    def parse_delimited_files(  # noqa: PLR0917 - v1 has this order
        self,
        include_path: bool = False,
        separator: str = ",",
        header: bool | str = True,
        partition_format: str | None = None,
        file_extension: str | None = "",
        set_column_types: Any = None,
        quoted_line_breaks: bool = False,
    ) -> PipelineOutputTabularDataset:
        """Return these files as a table of delimited text, whose values all stay text.

        Args:
            header: True, False, or a kind of header of `read_delimited` (docs/tables.md).
            file_extension: no other files of a folder are read. Empty: `.csv`, with a tab as the separator `.tsv`, and
                with any other one all files. None: all files.

        Raises:
            InvalidInput: an argument is wrong, or column types are given.
        """
        extension = _EXTENSIONS.get(separator) if file_extension == "" else file_extension
        steps = delimited_steps(
            include_path, separator, header, partition_format, set_column_types,
            file_extension=self._extension(extension), quoted_line_breaks=quoted_line_breaks or None,
        )  # fmt: skip
        return PipelineOutputTabularDataset(**{**vars(self), "transformations": steps})

    def parse_parquet_files(
        self,
        include_path: bool = False,
        partition_format: str | None = None,
        file_extension: str | None = ".parquet",
        set_column_types: Any = None,
    ) -> PipelineOutputTabularDataset:
        """Return these files as a table of Parquet files.

        Args:
            file_extension: no other files of a folder are read; None or empty: all files.

        Raises:
            InvalidInput: an argument is wrong, or column types are given.
        """
        steps = parquet_steps(include_path, partition_format, set_column_types, self._extension(file_extension))
        return PipelineOutputTabularDataset(**{**vars(self), "transformations": steps})

    def _extension(self, file_extension: str | None) -> str | None:
        """Return the extension of the files to read; a file that a step writes is read whatever its name."""
        return (file_extension or None) if self.data.type == "uri_folder" else None


class PipelineOutputTabularDataset(PipelineOutputAbstractDataset):
    """A `PipelineData` as a table, for the steps that read it."""


class PipelineData(StepData):
    """v1's `PipelineData`: an output of the step that has it in `outputs` or as `output`, an input of all others.

    Args:
        name: of the data and of the inputs that read them, and of the output unless `output_name` is given, which also
            names the inputs that read as_dataset().
        is_directory: False: it is a file.
        datastore, output_mode, output_path_on_compute, output_overwrite, data_type, pipeline_output_name: no effect, as
            all outputs are written in place, among those of the step.

    Raises:
        InvalidInput: it has no name, or is the output of a training, which steps here don't have.
    """

    INSTEAD: ClassVar = {
        **dict.fromkeys(("as_direct", "as_named_input", "drop_columns", "keep_columns"), _AS_DATASET_FIRST),
        **dict.fromkeys(("parse_delimited_files", "parse_parquet_files", "register"), _AS_DATASET_FIRST),
        **dict.fromkeys(("random_split", "read_delimited_files", "read_parquet_files"), _PARSE_FIRST),
        **dict.fromkeys(("as_upload", "create_input_binding", "get_env_variable_name"), _AS_ARGUMENT),
        "register_on_complete": "as_dataset().register(name) does it",
    }

    def __init__(  # noqa: PLR0917 - v1 has this order
        self,
        name: str,
        datastore: Any = None,
        output_name: str | None = None,
        output_mode: str | None = None,
        output_path_on_compute: str | None = None,
        output_overwrite: bool | None = None,
        data_type: str | None = None,
        is_directory: bool | None = None,
        pipeline_output_name: str | None = None,
        training_output: Any = None,
    ) -> None:
        refuse(WRITE_IN_PLACE, training_output=training_output)
        super().__init__(required_name(name), type="uri_file" if is_directory is False else "uri_folder")
        self._output_name = output_name or name

    @property
    def output_name(self) -> str:
        """The name of the output, as an output of a job can have it."""
        return _fit(self._output_name)

    def as_dataset(self) -> PipelineOutputFileDataset:
        """Return these data as a dataset, which can be registered and read as a table."""
        return PipelineOutputFileDataset(name=self.output_name, data=self)

    def as_input(self, input_name: str | None = None) -> StepDataInput:
        """Return these data as an input of another step; without a name, it has that of the data."""
        return super().as_input(input_name)

    def as_mount(self, input_name: str | None = None) -> StepDataInput:
        """Return these data as an input of another step, read where they are."""
        return self.as_input(input_name).as_mount()

    def as_download(
        self, input_name: str | None = None, path_on_compute: str | None = None, overwrite: bool | None = None
    ) -> StepDataInput:
        """Return these data as an input of another step, copied to the node's own disk first.

        Args:
            path_on_compute, overwrite: no effect: the script gets the path of a folder of its own as an argument.
        """
        return self.as_input(input_name).as_download()


def _fit(name: str) -> str:
    """Return a name as inputs and outputs of a job can have it."""
    text = _NOT_IN_NAMES.sub("_", name)
    return f"_{text}" if text[:1].isdecimal() else text


def required_name(name: object) -> str:
    """Return a name of data. Raises InvalidInput if it is empty or no text."""
    if not name or not isinstance(name, str):
        raise InvalidInput.at("/name", f"a name is required, not {name!r}")
    return name
