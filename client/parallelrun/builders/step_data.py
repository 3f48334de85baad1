"""Data between the steps of a v1 pipeline: `PipelineData` and `OutputFileDatasetConfig`."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any, Final, Self

from parallelrun.builders.parts import without_none

_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9_]")


class StepData:
    """A folder or file that one step writes; the step that has it among its outputs is that one.

    Args:
        name: of the output; by default, one is made up.
        path: where it is; by default, among the outputs of the step.
    """

    def __init__(self, name: str | None = None, path: str | None = None, type: str = "uri_folder") -> None:
        self.name = name or ""
        self.path = path
        self.type = type
        self.writer: Any = None
        """The step that writes it; None while there is none."""

    @property
    def key(self) -> str:
        """Its name, as an output of a job can have it; empty if it has none."""
        text = _NOT_IN_NAMES.sub("_", self.name)
        return f"_{text}" if text[:1].isdecimal() else text

    def fields(self) -> dict[str, Any]:
        """The fields of the output as in a job file."""
        return without_none({"type": self.type, "path": self.path})

    def as_input(self, name: str | None = None) -> StepDataInput:
        """Return this output as an input of another step."""
        return StepDataInput(self, name)

    def read_delimited_files(self, **options: Any) -> StepDataInput:
        """Return this output as the input of a step that gets it as a table, with the options of `read_delimited`."""
        return StepDataInput(self, transformations=({"read_delimited": options},))

    def read_parquet_files(self, **options: Any) -> StepDataInput:
        """Return this output as the input of a step that gets it as a table."""
        return StepDataInput(self, transformations=({"read_parquet": options} if options else "read_parquet",))


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

    def as_mount(self, path_on_compute: str | None = None) -> Self:
        """Return this input, read where it is."""
        return replace(self, mode="ro_mount")

    def as_download(self, path_on_compute: str | None = None) -> Self:
        """Return this input, copied to the node's own disk first."""
        return replace(self, mode="download")

    def as_direct(self) -> Self:
        """Return this input, read where it is."""
        return replace(self, mode="direct")


class PipelineData(StepData):
    """v1's `PipelineData`: an output of the step that has it in `outputs` or as `output`, an input of all others.

    Arguments that place data in Azure ML have no effect.
    """

    def __init__(
        self, name: str, datastore: Any = None, output_name: str | None = None, *, is_directory: bool = True, **_: Any
    ) -> None:
        super().__init__(output_name or name, type="uri_folder" if is_directory else "uri_file")

    def as_dataset(self) -> Self:
        """Return these data unchanged: they are read as a dataset anyway."""
        return self

    def as_mount(self) -> Self:
        """Return these data unchanged: they are read where they are."""
        return self

    def parse_delimited_files(self, **options: Any) -> StepDataInput:
        """Return these data as the input of a step that gets them as a table: see `read_delimited_files`."""
        return self.read_delimited_files(**options)

    def parse_parquet_files(self, **options: Any) -> StepDataInput:
        """Return these data as the input of a step that gets them as a table: see `read_parquet_files`."""
        return self.read_parquet_files(**options)

    def as_named_input(self, name: str) -> StepDataInput:
        """Return these data as an input of another step with this name."""
        return StepDataInput(self, name)

    def as_download(self) -> StepDataInput:
        """Return these data as an input of another step, copied to the node's own disk first."""
        return StepDataInput(self, mode="download")


class OutputFileDatasetConfig(StepData):
    """v1's `OutputFileDatasetConfig`: an output of the step that names it; `as_input()` is the input of another one.

    Args:
        destination: a path, or a pair of a datastore and a path in it; `{output-name}` in it is the name.
    """

    def __init__(self, name: str | None = None, destination: Any = None, **_: Any) -> None:
        super().__init__(name, _place(destination, name or "output"))
        self._asset = ""

    def fields(self) -> dict[str, Any]:
        """The fields of the output as in a job file."""
        return {**super().fields(), **({"asset": {"name": self._asset}} if self._asset else {})}

    def as_upload(self, overwrite: bool = False, source_globs: Any = None) -> Self:
        """Return this output unchanged: it is written to its destination anyway."""
        return self

    def as_mount(self, disable_metadata_cache: bool = False) -> Self:
        """Return this output unchanged: it is written to its destination anyway."""
        return self

    def register_on_complete(self, name: str, **_: Any) -> Self:
        """Return this output; it becomes data of this name when its step has completed."""
        self._asset = name
        return self


def _place(destination: Any, name: str) -> str | None:
    if destination is None:
        return None
    if isinstance(destination, tuple | list):
        from parallelrun_core.storage.location import in_datastore

        datastore, path = destination[0], destination[1] if len(destination) > 1 else name
        text = in_datastore(str(getattr(datastore, "name", datastore)), str(path).strip("/"))
    else:
        text = str(destination)
    return text.replace("{output-name}", name)
