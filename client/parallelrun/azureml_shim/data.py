"""Datastores and datasets of v1: paths, which Inputs have."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar, Final

from parallelrun.builders.missing import ReportsMissing
from parallelrun.builders.parts import Input, refuse, several
from parallelrun.builders.step_data import StepData, StepDataInput
from parallelrun.builders.v1_inputs import BY_PATH, MOUNT, DatasetInput, PipelineParameter, read_steps, steps_by_path
from parallelrun.errors import InvalidInput, NotFound

DataPlace = Any
"""A path, a URL, a `DataPath`, an input, a pair of a datastore and a path in it, or a list with one of these."""

_PUBLIC_ENDPOINT: Final = "core.windows.net"
_MODES: Final = {"mount": MOUNT}
_NO_UPLOADS: Final = "nodes read data where they are: name a folder that they see, as Dataset.File.from_files('/data')"
_DEFINE: Final = "define it on the server (docs/storage.md)"


class Datastore(ReportsMissing):
    """A datastore by its name: `azureml://datastores/NAME/paths/…`.

    Args:
        workspace: no effect.
    """

    INSTEAD: ClassVar = {
        **dict.fromkeys(("upload", "upload_files"), _NO_UPLOADS),
        **dict.fromkeys(("register_azure_data_lake_gen2", "register_azure_file_share"), _DEFINE),
        "download": "`parallelrun job download` fetches outputs",
    }

    def __init__(self, workspace: Any = None, name: str | None = None) -> None:
        self.name = name or "workspaceblobstore"

    @classmethod
    def get(cls, workspace: Any, datastore_name: str) -> Datastore:
        """The datastore of this name."""
        return cls(workspace, datastore_name)

    @classmethod
    def register_azure_blob_container(  # noqa: PLR0917 - v1 has this order
        cls,
        workspace: Any,
        datastore_name: str,
        container_name: str,
        account_name: str,
        sas_token: str | None = None,
        account_key: str | None = None,
        protocol: str | None = None,
        endpoint: str | None = None,
        overwrite: bool = False,
        create_if_not_exists: bool = False,
        skip_validation: bool = False,
        blob_cache_timeout: int | None = None,
        grant_workspace_access: bool = False,
        subscription_id: str | None = None,
        resource_group: str | None = None,
    ) -> Datastore:
        """Define a datastore on the server, unless it has one of this name.

        Args:
            overwrite: no effect, so that the definition of an operator stays.
            sas_token, account_key: no effect: credentials are given on the server (docs/storage.md).
            create_if_not_exists, skip_validation, blob_cache_timeout, grant_workspace_access, subscription_id,
                resource_group: no effect.

        Raises:
            InvalidInput: another protocol or endpoint than Azure's public ones is given.
            ApiError: the server refuses it.
        """
        from parallelrun.client import Client

        hint = "define the datastore on the server, with its URL (docs/storage.md)"
        refuse(hint, protocol=protocol != "https" and protocol, endpoint=endpoint != _PUBLIC_ENDPOINT and endpoint)
        with Client() as client:
            try:
                client.datastores.get(datastore_name)
            except NotFound:
                client.datastores.create(
                    {
                        "name": datastore_name,
                        "type": "azure_blob",
                        "account_name": account_name,
                        "container_name": container_name,
                    }
                )
        return cls(workspace, datastore_name)

    def path(self, path: str | None = None, data_reference_name: str | None = None) -> NamedDataset:
        """Return an input by a path in the datastore."""
        return NamedDataset(path=self.location(path or ""), name=data_reference_name)

    def as_mount(self) -> NamedDataset:
        """Return the whole datastore as an input, read where it is."""
        return self.path().as_mount()

    def as_download(self, path_on_compute: str | None = None) -> NamedDataset:
        """Return the whole datastore as an input, copied to the node's own disk first.

        Args:
            path_on_compute: no effect: the script gets the path of a folder of its own as an argument.
        """
        return self.path().as_download()

    def location(self, path: str) -> str:
        """Return the location of a path in the datastore."""
        from parallelrun_core.storage.location import in_datastore

        return in_datastore(self.name, path.strip("/"))


class DataPath:
    """A path in a datastore.

    Args:
        name: no effect.
    """

    def __init__(self, datastore: Datastore, path_on_datastore: str = "", name: str | None = None) -> None:
        self.path = datastore.location(path_on_datastore)


def DataReference(  # noqa: PLR0917 - v1 has this order
    datastore: Datastore,
    data_reference_name: str | None = None,
    path_on_datastore: str = "",
    mode: str = "mount",
    path_on_compute: str | None = None,
    overwrite: bool = False,
) -> NamedDataset:
    """Return an input by a path in a datastore.

    Args:
        mode: `mount` or `download`.
        path_on_compute, overwrite: no effect: the script gets the path of a folder of its own as an argument.

    Raises:
        InvalidInput: the mode is `upload`, which is for outputs.
    """
    refuse("an OutputFileDatasetConfig is what a step writes", mode=mode == "upload")
    path = datastore.location(path_on_datastore)
    return NamedDataset(path=path, name=data_reference_name, mode=_MODES.get(mode, mode))


class NamedDataset(DatasetInput):
    """An input with the methods that v1's datasets have."""

    @property
    def partition_keys(self) -> list[str]:
        """The keys that the partition format finds in the paths of the files."""
        from parallelrun_core.mltable.partition_format import parse_partition_format

        steps = [step for step in self.transformations or [] if isinstance(step, dict)]
        formats = [step[BY_PATH] for step in steps if BY_PATH in step]
        return [key for each in formats for key in parse_partition_format(each).names]

    def partition_by(
        self,
        partition_keys: Sequence[str],
        target: Any = None,
        name: str | None = None,
        show_progress: bool = True,
        partition_as_file_dataset: bool = False,
    ) -> NamedDataset:
        """Return this table unchanged: it is cut by any columns as it is.

        Args:
            target, name, show_progress: no effect: nothing is written to the target, and no data asset is made of it.

        Raises:
            InvalidInput: the result shall be a dataset of files.
        """
        refuse("a table stays one", partition_as_file_dataset=partition_as_file_dataset)
        several(partition_keys, "/partition_keys")
        return self

    def register(
        self,
        workspace: Any = None,
        name: str = "",
        description: str | None = None,
        tags: Mapping[str, str] | None = None,
        create_new_version: bool = False,
    ) -> NamedDataset:
        """Make a version of the data asset of this name on the server. One with steps that read it is an MLTable
        there, which names the place of the data.

        Args:
            create_new_version: no effect: other data are a new version anyway.

        Raises:
            ApiError: the server refuses it.
        """
        from parallelrun.client import Client
        from parallelrun_core.storage.location import is_url

        definition: dict[str, Any] = {"name": name, "path": self.path, "type": self.type or "uri_folder"}
        definition |= {"description": description, "tags": tags}
        with Client() as client, TemporaryDirectory() as folder:
            if self.transformations and self.path:
                place = self.path if is_url(self.path) else os.path.abspath(self.path)
                table = {"paths": [{"pattern": place}], "transformations": self.transformations}
                Path(folder, "MLTable").write_text(json.dumps(table), encoding="utf-8")
                definition |= {"type": "mltable", "path": folder}
            client.data.create({key: value for key, value in definition.items() if value})
        return self


class _Files(ReportsMissing):
    INSTEAD: ClassVar = {"upload_directory": _NO_UPLOADS}

    @staticmethod
    def from_files(
        path: DataPlace, validate: bool = True, partition_format: str | None = None, is_file: bool = False
    ) -> NamedDataset:
        """A dataset of files.

        Args:
            validate, is_file: no effect; data are looked at when the job is submitted.
        """
        return NamedDataset(path=_place(path), transformations=steps_by_path(partition_format) or None)


class _Tables(ReportsMissing):
    """Datasets whose rows `run()` gets as DataFrames. Arguments are in the order of v1."""

    INSTEAD: ClassVar = {"register_pandas_dataframe": _NO_UPLOADS}

    @staticmethod
    def from_delimited_files(  # noqa: PLR0917 - v1 has this order
        path: DataPlace,
        validate: bool = True,
        include_path: bool = False,
        infer_column_types: bool = True,
        set_column_types: Any = None,
        separator: str = ",",
        header: Any = True,
        partition_format: str | None = None,
        support_multi_line: bool = False,
        empty_as_string: bool = False,
        encoding: str = "utf8",
    ) -> NamedDataset:
        """A dataset of delimited text.

        Args:
            validate: no effect; data are looked at when the job is submitted.

        Raises:
            InvalidInput: column types are given, which are steps of `transformations` here, or a header that is no kind
                of them.
        """
        options = {
            "separator": separator,
            "header": header,
            "include_path": include_path,
            "infer_column_types": infer_column_types,
            "support_multi_line": support_multi_line,
            "empty_as_string": empty_as_string,
            "encoding": encoding,
        }
        steps = read_steps("read_delimited", options, partition_format, set_column_types)
        return NamedDataset(path=_place(path), transformations=steps)

    @staticmethod
    def from_parquet_files(
        path: DataPlace,
        validate: bool = True,
        include_path: bool = False,
        set_column_types: Any = None,
        partition_format: str | None = None,
    ) -> NamedDataset:
        """A dataset of Parquet files."""
        options = {"include_path": include_path}
        steps = read_steps("read_parquet", options, partition_format, set_column_types)
        return NamedDataset(path=_place(path), transformations=steps)

    @staticmethod
    def from_json_lines_files(  # noqa: PLR0917 - v1 has this order
        path: DataPlace,
        validate: bool = True,
        include_path: bool = False,
        set_column_types: Any = None,
        partition_format: str | None = None,
        invalid_lines: str = "error",
        encoding: str = "utf8",
    ) -> NamedDataset:
        """A dataset of files with a JSON object in each line."""
        options = {"include_path": include_path, "invalid_lines": invalid_lines, "encoding": encoding}
        steps = read_steps("read_json_lines", options, partition_format, set_column_types)
        return NamedDataset(path=_place(path), transformations=steps)


class Dataset(ReportsMissing):
    """v1's `Dataset`: `Dataset.File`, `Dataset.Tabular`, and data assets by name."""

    File = _Files
    Tabular = _Tables

    @staticmethod
    def get_by_name(workspace: Any, name: str, version: str | int = "latest") -> NamedDataset:
        """The data asset of this name."""
        return NamedDataset(path=f"azureml:{name}@latest" if version == "latest" else f"azureml:{name}:{version}")


def DatasetConsumptionConfig(
    name: str, dataset: Any, mode: str = "mount", path_on_compute: str | None = None
) -> DatasetInput:
    """Return a dataset, what another step writes, or a pipeline parameter whose default is a dataset, as an input.

    Args:
        name: of the input.
        mode: `mount`, `download` or `direct`.
        path_on_compute: no effect: the script gets the path as an argument.

    Raises:
        InvalidInput: it is none of these.
    """
    parameter = dataset if isinstance(dataset, PipelineParameter) else None
    source = parameter.default_value if parameter else dataset
    input_mode = _MODES.get(mode, mode)
    if isinstance(source, StepData | StepDataInput):
        return replace(source.as_input(name), mode=input_mode)
    if not isinstance(source, Input):
        hint = "Dataset.File.from_files(path) makes one"
        raise InvalidInput.at("/dataset", f"{type(source).__name__} is no dataset", hint)
    return NamedDataset(**{**vars(source), "name": name, "mode": input_mode, "parameter": parameter})


def _place(path: DataPlace) -> str:
    if isinstance(path, DataPath | Input):
        return str(path.path)
    if isinstance(path, str | PathLike):
        return str(path)
    match path:
        case [Datastore() as datastore, path_in_it]:
            return datastore.location(str(path_in_it))
        case [place]:
            return _place(place)
    hint = "name a folder that has all files, or a pattern"
    raise InvalidInput.at("/path", "a dataset has one path here: a folder, a file or a pattern", hint)
