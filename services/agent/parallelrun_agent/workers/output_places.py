"""Places of a job's outputs for its workers: paths as they are, and for URLs local folders of each worker's own.

<local>/.outputs/<process>/live/<number>/…                 what stands for the output of this number
<local>/.outputs/<process>/aside/<mini-batch>/<number>/…   what a mini-batch has written, until it is uploaded
"""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.spec import JobSpec
from parallelrun_core.storage.location import is_url
from parallelrun_core.storage.stores import storage_of

OUTPUTS: Final = ".outputs"
ARTIFACTS: Final = "outputs"
"""The folder in an output for artifacts in which these are, as in Azure ML."""
_LIVE, _ASIDE = "live", "aside"


class WorkerOutputs(NamedTuple):
    paths: dict[str, str]
    """The path of each named output."""
    main: str
    """The folder of the output."""
    live: list[str]
    """Local folders whose files are uploaded."""
    aside: str
    """The folder where the worker puts what is to be uploaded; empty if nothing is."""


class OutputPlaces:
    """The outputs of one job on one node.

    Args:
        local: the job's folder on this node.
    """

    def __init__(self, folder: JobFolder, spec: JobSpec, local: Path) -> None:
        self._main = _with_plain_names(_main_folder(folder, spec))
        self._local = local / OUTPUTS
        self._folders: dict[str, tuple[str, str]] = {}
        """The folder of each named output, and the name of its file there; empty for the folder itself."""
        for name, path in folder.output_paths(spec).items():
            is_file = spec.outputs[name].type == "uri_file"
            above, file = posixpath.split(path) if is_file else (path, "")
            self._folders[name] = _with_plain_names(above), file
        folders = [self._main, *(above for above, _ in self._folders.values())]
        self.urls: Sequence[str] = tuple(dict.fromkeys(filter(is_url, folders)))
        """Outputs in stores, by their numbers. What is put behind one of them is the name of an object as it is."""
        self.shared: Sequence[Path] = tuple(Path(each) for each in dict.fromkeys(folders) if not is_url(each))
        """Folders in which all workers write."""

    def of(self, process: str) -> WorkerOutputs:
        """Return what a worker of this name gets."""
        live = [str(self.folder(process) / _LIVE / str(number)) for number in range(len(self.urls))]
        local = dict(zip(self.urls, live, strict=True))
        paths = {
            name: posixpath.join(local.get(above, above), file) if file else local.get(above, above)
            for name, (above, file) in self._folders.items()
        }
        aside = str(self.folder(process) / _ASIDE) if live else ""
        return WorkerOutputs(paths, local.get(self._main, self._main), live, aside)

    def folder(self, process: str) -> Path:
        """All that a worker has for its outputs in stores."""
        return self._local / process

    def set_aside(self, process: str, mini_batch: int) -> Path:
        """Return what a mini-batch has written."""
        return self.folder(process) / _ASIDE / str(mini_batch)

    def rest(self, process: str) -> Path:
        """Return what is left when a worker has ended: what was written in its shutdown(), or was open for longer."""
        return self.folder(process) / _LIVE


def _main_folder(folder: JobFolder, spec: JobSpec) -> str:
    """Return what a script finds as the folder of its output (reference §3.7): the one with the rows, or else the only
    one.

    A job without rows that has several folders, or none, or a command, gets the one in which they are; a command with
    an output for its artifacts, the folder of these.
    """
    paths = folder.output_paths(spec)
    artifacts = next((paths[name] for name, output in spec.outputs.items() if output.has_artifacts), "")
    if spec.command and artifacts:
        return posixpath.join(artifacts, ARTIFACTS)
    folders = [path for name, path in paths.items() if spec.outputs[name].type == "uri_folder"]
    if spec.writes_rows or spec.command or len(folders) != 1:
        return posixpath.dirname(folder.output_file(spec))
    return folders[0]


def _with_plain_names(path: str) -> str:
    """The URL of the same folder below which nothing is quoted: names of files are no parts of web addresses."""
    return storage_of(path).identity(path) if is_url(path) else path
