"""The tree of a job's staged objects: each with its path below its input, as if that were mounted."""

from __future__ import annotations

import secrets
import shutil
from pathlib import Path
from typing import Final

from parallelrun_core.spec import JobSpec
from parallelrun_core.spec.fields import Input
from parallelrun_core.storage.location import is_url
from parallelrun_core.storage.stores import storage_of

_STORES: Final = ".stores"
_PARTS: Final = ".parts"
"""No input has these names."""
_SIDE_INPUTS: Final = "0"
_MOST_FOLDERS: Final = 4096
_QUOTED: Final = ("http:", "https:")
"""In these URLs, the name of an object is not what it ends with."""


def is_far(job_input: Input) -> bool:
    """Return whether an input is to be brought to the node."""
    return is_url(job_input.path) and job_input.mode != "direct"


def side_inputs(spec: JobSpec) -> dict[str, str]:
    """The URLs of the inputs, by name, which are not cut into mini-batches: each worker needs all of them."""
    cut = {name for name, _ in spec.data_inputs()}
    return {name: job_input.path for name, job_input in spec.input_paths() if is_far(job_input) and name not in cut}


class JobTree:
    """The tree of one job on one node. Its sessions have folders of their own: one may still be ending what it began
    when the next one begins.

    Args:
        path: its folder.
    """

    def __init__(self, path: Path, spec: JobSpec) -> None:
        self._path = path
        self.side_inputs = path / f"{_SIDE_INPUTS}-{secrets.token_hex(4)}"
        """The folder of all inputs that aren't cut: of its own, as threads of an earlier time here may still write."""
        self._session = 0
        self.path = path
        """The folder of the present session's data."""
        self._data = spec.data_inputs()
        self._tops = [_top_of(job_input.path) for _, job_input in self._data]
        self._folders: dict[tuple[int, str], str] = {}
        """Of folders in stores, below `path`: those of objects are asked for one object after the other."""

    def begin_session(self) -> None:
        """Put all places into a folder of a new session from now on."""
        self._session += 1
        self.path = self._path / str(self._session)

    def remove(self) -> None:
        """Nothing of it is needed any more."""
        shutil.rmtree(self._path, ignore_errors=True)

    def place(self, number: int, url: str) -> str:
        """Return where an object of a data input is: below its input; or, if that only names it, below its store."""
        folder, _, name = url.rpartition("/")
        if (folder_number := self._folders.get((number, folder))) is not None:
            return f"{self.path}/{folder_number}/{name}"
        place = self._place(number, url)
        if url != self._tops[number] and not url.lower().startswith(_QUOTED) and place.endswith(f"/{name}"):
            if len(self._folders) >= _MOST_FOLDERS:
                self._folders.clear()
            self._folders[number, folder] = place[: -len(name) - 1]
        return f"{self.path}/{place}"

    def _place(self, number: int, url: str) -> str:
        storage, top = storage_of(url), self._tops[number]
        if top and (below := storage.below(url, top)) is not None:
            return f"{self._data[number][0]}/{below}"
        return f"{_STORES}/{storage.unique_relative_path(url)}"

    def part(self, name: str) -> str:
        """Return where a part of an object is that has a name of its own."""
        return f"{self.path}/{_PARTS}/{name}"

    def paths(self) -> dict[str, str]:
        """Return what scripts find as the path of each data input that is brought here."""
        return {
            name: self.place(number, job_input.path) if job_input.type == "uri_file" else f"{self.path}/{name}"
            for number, (name, job_input) in enumerate(self._data)
            if is_far(job_input)
        }

    def side_folder(self, name: str) -> Path:
        """Return where the objects of an input that isn't cut are."""
        return self.side_inputs / name


def _top_of(path: str) -> str:
    return storage_of(path).split(path)[0] if is_url(path) else ""
