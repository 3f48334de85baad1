"""Data between the steps of a v1 pipeline: `PipelineData` and `OutputFileDatasetConfig`."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any, Final, Self

from parallelrun.builders.parts import refuse, without_none
from parallelrun.errors import InvalidInput

_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9_]")
_OUTPUT_NAME: Final = "{output-name}"
_RUN_ID: Final = "{run-id}"
_HEADERS: Final = {True: "all_files_same_headers", False: "no_header"}
_SEE_TABLES: Final = "in a pipeline file, an input with transformations has it (docs/tables.md)"
_ALL_FILES: Final = "let the step write what belongs to the table, and nothing else, into its output"
_WRITE_IN_PLACE: Final = "the script writes into the folder that it gets as an argument"


def kind_of_header(header: Any) -> str | None:
    """Return the `header` of `read_delimited` for that of v1: True, False, the name of a kind, or None.

    Raises:
        InvalidInput: it is something else.
    """
    if not isinstance(header, bool | str | None):
        hint = "docs/tables.md has the names"
        raise InvalidInput.at("/header", f"True, False or the name of a kind, not {header!r}", hint)
    return _HEADERS[header] if isinstance(header, bool) else header


class StepData:
    """A folder or file that one step of a pipeline writes, and others may read: the base of v1's two classes of them.

    Args:
        name: the name of the output; without one, the step that writes it numbers its outputs (`output_0`).
        path: the place of the output; by default, among the outputs of the step. `{output-name}` in it stands for the
            name of the output, and `{run-id}` for that of the job.
        type: `uri_folder` or `uri_file`.
    """

    def __init__(self, name: str | None = None, path: str | None = None, type: str = "uri_folder") -> None:
        self.name = name or ""
        self.path = path
        self.type = type
        self.writer: Any = None
        """The step that writes it, of several the latest, as of a cell of a notebook that runs again; None: no step."""

    @property
    def output_name(self) -> str:
        """The name, as an output of a job can have it; empty if there is none."""
        text = _NOT_IN_NAMES.sub("_", self.name)
        return f"_{text}" if text[:1].isdecimal() else text

    def fields(self, output_name: str) -> dict[str, Any]:
        """The fields of the output as in a job file.

        Args:
            output_name: the name under which its step has it.
        """
        path = self.path.replace(_OUTPUT_NAME, output_name).replace(_RUN_ID, "${{name}}") if self.path else None
        return without_none({"type": self.type, "path": path})

    def read_delimited_files(  # noqa: PLR0917 - v1 has this order
        self,
        include_path: bool | None = None,
        separator: str | None = None,
        header: bool | str | None = None,
        partition_format: str | None = None,
        path_glob: str | None = None,
        set_column_types: Any = None,
        **options: Any,
    ) -> StepDataInput:
        """Return this output as the input of a step that gets it as a table.

        Args:
            options: others of `read_delimited` (docs/tables.md).

        Raises:
            InvalidInput: a glob or column types are given, or a header that is no kind of them.
        """
        refuse(_ALL_FILES, path_glob=path_glob)
        refuse(_SEE_TABLES, set_column_types=set_column_types)
        read_options = {
            "include_path_column": include_path,
            "delimiter": separator,
            "header": kind_of_header(header),
        }
        return self._as_table("read_delimited", {**read_options, **options}, partition_format)

    def read_parquet_files(
        self,
        include_path: bool | None = None,
        partition_format: str | None = None,
        path_glob: str | None = None,
        set_column_types: Any = None,
        **options: Any,
    ) -> StepDataInput:
        """Return this output as the input of a step that gets it as a table.

        Args:
            options: others of `read_parquet` (docs/tables.md).

        Raises:
            InvalidInput: a glob or column types are given.
        """
        refuse(_ALL_FILES, path_glob=path_glob)
        refuse(_SEE_TABLES, set_column_types=set_column_types)
        return self._as_table("read_parquet", {"include_path_column": include_path, **options}, partition_format)

    def _as_table(self, step: str, options: dict[str, Any], partition_format: str | None) -> StepDataInput:
        options = without_none(options)
        by_path = ({"extract_columns_from_partition_format": partition_format},) if partition_format else ()
        return StepDataInput(self, transformations=({step: options} if options else step, *by_path))


@dataclass(frozen=True, eq=False)
class StepDataInput:
    """An input of a step that another step writes, and how this one reads it."""

    data: StepData
    name: str | None = None
    mode: str | None = None
    transformations: tuple[Any, ...] = ()

    def as_named_input(self, name: str) -> Self:
        """Return this input with this name."""
        return replace(self, name=name)

    def as_input(self, name: str | None = None) -> Self:
        """Return this input, with this name if one is given, as what v1 reads as a table is named."""
        return replace(self, name=name or self.name)

    def as_mount(self, path_on_compute: str | None = None) -> Self:
        """Return this input, read where it is.

        Args:
            path_on_compute: no effect: the script gets the path as an argument.
        """
        return replace(self, mode="ro_mount")

    def as_download(self, path_on_compute: str | None = None) -> Self:
        """Return this input, copied to the node's own disk first.

        Args:
            path_on_compute: no effect: the script gets the path as an argument.
        """
        return replace(self, mode="download")

    def as_direct(self) -> Self:
        """Return this input, read where it is."""
        return replace(self, mode="direct")


class PipelineData(StepData):
    """v1's `PipelineData`: an output of the step that has it in `outputs` or as `output`, an input of all others.

    Args:
        name: of the output, unless `output_name` is given.
        is_directory: False: it is a file.
        datastore, output_mode, output_path_on_compute, output_overwrite, data_type, pipeline_output_name: no effect, as
            all outputs are written in place, among those of the step.

    Raises:
        InvalidInput: it is the output of a training, which steps here don't have.
    """

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
        refuse(_WRITE_IN_PLACE, training_output=training_output)
        super().__init__(output_name or name, type="uri_file" if is_directory is False else "uri_folder")

    def as_dataset(self) -> Self:
        """Return these data unchanged: they are read as a dataset anyway."""
        return self

    def as_input(self, input_name: str | None = None) -> StepDataInput:
        """Return these data as an input of another step."""
        return StepDataInput(self, input_name)

    def as_mount(self, input_name: str | None = None) -> Self | StepDataInput:
        """Return these data, as an input if it has a name: they are read where they are."""
        return StepDataInput(self, input_name, mode="ro_mount") if input_name else self

    def as_named_input(self, name: str) -> StepDataInput:
        """Return these data as an input of another step with this name."""
        return StepDataInput(self, name)

    def as_download(
        self, input_name: str | None = None, path_on_compute: str | None = None, overwrite: bool | None = None
    ) -> StepDataInput:
        """Return these data as an input of another step, copied to the node's own disk first.

        Args:
            path_on_compute, overwrite: no effect: the script gets the path of a folder of its own as an argument.
        """
        return StepDataInput(self, input_name, mode="download")

    def parse_delimited_files(  # noqa: PLR0917 - v1 has this order
        self,
        include_path: bool | None = None,
        separator: str | None = None,
        header: bool | str | None = None,
        partition_format: str | None = None,
        file_extension: str | None = None,
        set_column_types: Any = None,
        quoted_line_breaks: bool = False,
        **options: Any,
    ) -> StepDataInput:
        """Return these data as the input of a step that gets them as a table: see `read_delimited_files`.

        Raises:
            InvalidInput: an extension is given; what is read are all files.
        """
        refuse(_ALL_FILES, file_extension=file_extension)
        return self.read_delimited_files(
            include_path, separator, header, partition_format, set_column_types=set_column_types,
            support_multi_line=quoted_line_breaks or None, **options,
        )  # fmt: skip

    def parse_parquet_files(
        self,
        include_path: bool | None = None,
        partition_format: str | None = None,
        file_extension: str | None = None,
        set_column_types: Any = None,
        **options: Any,
    ) -> StepDataInput:
        """Return these data as the input of a step that gets them as a table: see `read_parquet_files`.

        Raises:
            InvalidInput: an extension other than that of Parquet is given; what is read are all files.
        """
        if file_extension != ".parquet":
            refuse(_ALL_FILES, file_extension=file_extension)
        return self.read_parquet_files(include_path, partition_format, set_column_types=set_column_types, **options)


class OutputFileDatasetConfig(StepData):
    """v1's `OutputFileDatasetConfig`: an output of the step that names it; `as_input()` is the input of another one.

    Args:
        destination: a path, or a pair of a datastore and a path in it; `{output-name}` in it is the name of the output,
            and `{run-id}` that of the job. Without a path: `{run-id}/{output-name}`.

    Raises:
        InvalidInput: another folder is given as the `source` of an upload, or a `partition_format`, which belongs to
            the step that reads.
    """

    def __init__(
        self, name: str | None = None, destination: Any = None, source: Any = None, partition_format: str | None = None
    ) -> None:
        refuse(_WRITE_IN_PLACE, source=source)
        refuse("give it to read_delimited_files or read_parquet_files", partition_format=partition_format)
        super().__init__(name, _path_of(destination))
        self._asset: dict[str, Any] = {}

    def fields(self, output_name: str) -> dict[str, Any]:
        """The fields of the output as in a job file.

        Args:
            output_name: the name under which its step has it.
        """
        return {**super().fields(output_name), **({"asset": self._asset} if self._asset else {})}

    def as_input(self, name: str | None = None) -> StepDataInput:
        """Return this output as an input of another step."""
        return StepDataInput(self, name)

    def as_upload(self, overwrite: bool = False, source_globs: Any = None) -> Self:
        """Return this output unchanged: it is written to its destination anyway.

        Args:
            overwrite: no effect.

        Raises:
            InvalidInput: globs are given; what the step writes is all there.
        """
        refuse("write what belongs to the output, and nothing else, into its folder", source_globs=source_globs)
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
        """Return this output; it becomes data of this name when its step has completed.

        Args:
            description, tags: no effect: the version says which job has made it.
        """
        self._asset = {"name": name}
        return self


def _path_of(destination: Any) -> str | None:
    if destination is None or isinstance(destination, str | PathLike):
        return None if destination is None else str(destination)
    if not isinstance(destination, tuple | list) or not 1 <= len(destination) <= 2:
        raise InvalidInput.at("/destination", f"a path, or a datastore and a path in it, not {destination!r}")
    from parallelrun_core.storage.location import in_datastore

    datastore, path = (*destination, None)[:2]
    datastore_name = getattr(datastore, "name", datastore)
    if not datastore_name or not isinstance(datastore_name, str):
        raise InvalidInput.at("/destination", f"a datastore, or its name, comes first, not {datastore!r}")
    return in_datastore(datastore_name, str(path or f"{_RUN_ID}/{_OUTPUT_NAME}").strip("/"))
