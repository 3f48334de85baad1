"""Datastores and datasets of v1: paths, which Inputs have; and the error for what v1's classes have and these lack."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from parallelrun.builders.parts import Input, refuse, several, without_none
from parallelrun.builders.step_data import kind_of_header
from parallelrun.builders.v1_steps import DatasetInput, PipelineParameter
from parallelrun.errors import NotFound

DataPlace = Any
"""A path, a URL, a `DataPath`, a pair of a datastore and a path in it, or a list with one of these."""


_PUBLIC_ENDPOINT: Final = "core.windows.net"
_MODES: Final = {"mount": "ro_mount"}
_NO_UPLOADS: Final = "nodes read data where they are: name a folder that they see, as Dataset.File.from_files('/data')"
_INSTEAD: Final = {
    **dict.fromkeys(("upload", "upload_files", "upload_directory", "register_pandas_dataframe"), _NO_UPLOADS),
    **dict.fromkeys(("download", "to_path"), "the files are at the path of the dataset"),
    **dict.fromkeys(
        ("to_pandas_dataframe", "take", "sample", "skip"),
        "run() gets the rows as DataFrames; `parallelrun data preview` shows the first ones",
    ),
}
"""What to do in place of members that samples use beside those that are here."""


def _missing(owner: type, name: str) -> AttributeError:
    if name.startswith("_"):
        return AttributeError(name)
    remedy = _INSTEAD.get(name, "see docs/from-azure-ml.md")
    return AttributeError(f"{owner.__name__.strip('_')}.{name} has no counterpart in ParallelRun ({remedy})")


class _ReportsMissing(type):
    """The kind of such classes: they are asked for members themselves, as in `Dataset.File.upload_directory`."""

    def __getattr__(cls, name: str) -> Any:
        raise _missing(cls, name)


class ReportsMissing(metaclass=_ReportsMissing):
    """A class of v1, with those of its members that public samples use."""

    def __getattr__(self, name: str) -> Any:
        raise _missing(type(self), name)


class Datastore(ReportsMissing):
    """A datastore by its name: `azureml://datastores/NAME/paths/…`.

    Args:
        workspace: no effect.
    """

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

    def path(self, path: str = "") -> str:
        """The location of a path in the datastore."""
        from parallelrun_core.storage.location import in_datastore

        return in_datastore(self.name, path.strip("/"))


class DataPath:
    """A path in a datastore.

    Args:
        name: no effect.
    """

    def __init__(self, datastore: Datastore, path_on_datastore: str = "", name: str | None = None) -> None:
        self.place = datastore.path(path_on_datastore)


class DataReference(Input):
    """v1's `DataReference`: an input by a path in a datastore.

    Args:
        mode: `mount` or `download`.
        path_on_compute, overwrite: no effect: the script gets the path of a folder of its own as an argument.

    Raises:
        InvalidInput: the mode is `upload`, which is for outputs.
    """

    def __init__(  # noqa: PLR0917 - v1 has this order
        self,
        datastore: Datastore,
        data_reference_name: str | None = None,
        path_on_datastore: str = "",
        mode: str = "mount",
        path_on_compute: str | None = None,
        overwrite: bool = False,
    ) -> None:
        refuse("an OutputFileDatasetConfig is what a step writes", mode=mode == "upload")
        super().__init__(path=datastore.path(path_on_datastore), name=data_reference_name, mode=_MODES.get(mode, mode))


class NamedDataset(DatasetInput, ReportsMissing):
    """An input with the methods that v1's datasets have."""

    @property
    def partition_keys(self) -> list[str]:
        """The keys that the partition format finds in the paths of the files."""
        from parallelrun_core.mltable.partition_format import parse_partition_format

        steps = [step for step in self.transformations or [] if isinstance(step, dict)]
        formats = [step[_BY_PATH] for step in steps if _BY_PATH in step]
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

    def as_mount(self, path_on_compute: str | None = None) -> NamedDataset:
        """Return this dataset, read where it is.

        Args:
            path_on_compute: no effect: the script gets the path as an argument.
        """
        return self._with(mode="ro_mount")

    def as_download(self, path_on_compute: str | None = None) -> NamedDataset:
        """Return this dataset, copied to the node's own disk first.

        Args:
            path_on_compute: no effect: the script gets the path as an argument.
        """
        return self._with(mode="download")

    def as_direct(self) -> NamedDataset:
        """Return this dataset, read where it is."""
        return self._with(mode="direct")

    def register(
        self,
        workspace: Any = None,
        name: str = "",
        description: str | None = None,
        tags: Mapping[str, str] | None = None,
        create_new_version: bool = False,
    ) -> NamedDataset:
        """Make a version of the data asset of this name on the server.

        Args:
            create_new_version: no effect: other data are a new version anyway.

        Raises:
            ApiError: the server refuses it.
        """
        from parallelrun.client import Client

        definition: dict[str, Any] = {"name": name, "path": self.path, "type": self.type or "uri_folder"}
        definition |= {"description": description, "tags": tags}
        with Client() as client:
            client.data.create({key: value for key, value in definition.items() if value})
        return self

    def _with(self, **changes: Any) -> NamedDataset:
        return NamedDataset(**{**vars(self), **changes})


class _Files(ReportsMissing):
    @staticmethod
    def from_files(
        path: DataPlace, validate: bool = True, partition_format: str | None = None, is_file: bool = False
    ) -> NamedDataset:
        """A dataset of files.

        Args:
            validate, is_file: no effect; data are looked at when the job is submitted.
        """
        return NamedDataset(path=_place(path), transformations=_by_path(partition_format) or None)


class _Tables(ReportsMissing):
    """Datasets whose rows `run()` gets as DataFrames. Arguments are in the order of v1."""

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
            "delimiter": separator,
            "header": kind_of_header(header),
            "include_path_column": include_path,
            "infer_column_types": infer_column_types,
            "support_multi_line": support_multi_line,
            "empty_as_string": empty_as_string,
            "encoding": encoding,
        }
        return _table("read_delimited", options, path, set_column_types, partition_format)

    @staticmethod
    def from_parquet_files(
        path: DataPlace,
        validate: bool = True,
        include_path: bool = False,
        set_column_types: Any = None,
        partition_format: str | None = None,
    ) -> NamedDataset:
        """A dataset of Parquet files."""
        options = {"include_path_column": include_path}
        return _table("read_parquet", options, path, set_column_types, partition_format)

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
        options = {"include_path_column": include_path, "invalid_lines": invalid_lines, "encoding": encoding}
        return _table("read_json_lines", options, path, set_column_types, partition_format)


_BY_PATH: Final = "extract_columns_from_partition_format"


def _by_path(partition_format: str | None) -> list[Any]:
    return [{_BY_PATH: partition_format}] if partition_format else []


def _table(
    step: str, options: dict[str, Any], path: DataPlace, column_types: Any, partition_format: str | None
) -> NamedDataset:
    hint = "an Input with transformations: [{convert_column_types: …}] has them (docs/tables.md)"
    refuse(hint, set_column_types=column_types)
    return NamedDataset(path=_place(path), transformations=[{step: without_none(options)}, *_by_path(partition_format)])


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
) -> NamedDataset:
    """A dataset, or a pipeline parameter whose default is one, as an input of this name."""
    parameter = dataset if isinstance(dataset, PipelineParameter) else None
    data = dataset if parameter is None else parameter.default_value
    fields = {**vars(data), "name": name, "mode": _MODES.get(mode, mode), "parameter": parameter}
    return NamedDataset(**fields)


def _place(path: DataPlace) -> str:
    if isinstance(path, DataPath):
        return path.place
    is_several = isinstance(path, Sequence) and not isinstance(path, str)
    if is_several and len(path) == 1:
        return _place(path[0])
    if is_several and len(path) == 2 and isinstance(path[0], Datastore):
        return path[0].path(str(path[1]))
    if is_several:
        raise ValueError("a dataset has one path here: a folder, a file or a pattern")
    return str(path)
