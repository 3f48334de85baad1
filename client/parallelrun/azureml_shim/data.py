"""Datastores and datasets of v1: paths, which Inputs have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from parallelrun.builders.parts import Input
from parallelrun.builders.v1_steps import PipelineParameter

DataPlace = Any
"""A path, a URL, a `DataPath`, a pair of a datastore and a path in it, or a list with one of these."""


class Datastore:
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
    def register_azure_blob_container(
        cls, workspace: Any, datastore_name: str, container_name: str, account_name: str, **_: Any
    ) -> Datastore:
        """Define a datastore on the server, unless it has one; credentials are given there (docs/storage.md).

        Raises:
            ApiError: the server refuses it.
        """
        from parallelrun.client import Client
        from parallelrun.errors import NotFound

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
    """A path in a datastore."""

    def __init__(self, datastore: Datastore, path_on_datastore: str = "", **_: Any) -> None:
        self.place = datastore.path(path_on_datastore)


class DataReference(Input):
    """v1's `DataReference`: an input by a path in a datastore."""

    def __init__(
        self, datastore: Datastore, data_reference_name: str | None = None, path_on_datastore: str = "", **_: Any
    ) -> None:
        super().__init__(path=datastore.path(path_on_datastore), name=data_reference_name)


class NamedDataset(Input):
    """An input with the methods that v1's datasets have."""

    def as_mount(self, path_on_compute: str | None = None) -> NamedDataset:
        """Return this dataset, read where it is."""
        return self._with(mode="ro_mount")

    def as_download(self, path_on_compute: str | None = None) -> NamedDataset:
        """Return this dataset, copied to the node's own disk first."""
        return self._with(mode="download")

    def as_direct(self) -> NamedDataset:
        """Return this dataset, read where it is."""
        return self._with(mode="direct")

    def register(self, workspace: Any = None, name: str = "", description: str = "", **_: Any) -> NamedDataset:
        """Make a version of the data asset of this name on the server.

        Raises:
            ApiError: the server refuses it.
        """
        from parallelrun.client import Client

        definition = {"name": name, "path": self.path, "type": self.type or "uri_folder", "description": description}
        with Client() as client:
            client.data.create({key: value for key, value in definition.items() if value})
        return self

    def _with(self, **changes: Any) -> NamedDataset:
        return NamedDataset(**{**vars(self), **changes})


class _Files:
    @staticmethod
    def from_files(path: DataPlace, validate: bool = True, **_: Any) -> NamedDataset:
        """A dataset of files."""
        return NamedDataset(path=_place(path))


class _Tables:
    @staticmethod
    def from_delimited_files(path: DataPlace, separator: str = ",", **_: Any) -> NamedDataset:
        """A dataset of delimited text: `run()` gets DataFrames."""
        return NamedDataset(path=_place(path), transformations=[{"read_delimited": {"delimiter": separator}}])

    @staticmethod
    def from_parquet_files(path: DataPlace, **_: Any) -> NamedDataset:
        """A dataset of Parquet files: `run()` gets DataFrames."""
        return NamedDataset(path=_place(path), transformations=["read_parquet"])


class Dataset:
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
    if isinstance(dataset, PipelineParameter):
        dataset = dataset.default_value
    fields = {**vars(dataset), "name": name, "mode": {"mount": "ro_mount"}.get(mode, mode)}
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
