"""The folder that `parallelrun run` leaves behind: the outputs and `logs/`.

    DIR/<output>          a file is there only when it is complete
    DIR/logs/             the job's logs
    DIR/.parallelrun/     working data; kept if another run can take over from it, or the user wants to keep it

Everything is below DIR, so on one file system, and results are renamed or linked to their place, not copied.
Nothing is removed or replaced that ParallelRun hasn't written.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from parallelrun.background.lock import FolderLock
from parallelrun_core.durable_files import has_no_links, link_or_copy, replace_file, sync_folder
from parallelrun_core.errors import InvalidInput

LOGS: Final = "logs"
WORKING_DATA: Final = ".parallelrun"
_MARK: Final = ".parallelrun"
_HANDED_OVER: Final = "handed_over"


class RunFolder:
    """The folder of one run, which nobody else can use until it is closed.

    Raises:
        InvalidInput: it can't be written, there is an output already, `logs` is not ours, or another run is using it.
    """

    def __init__(self, folder: Path, *, outputs: Iterable[str], overwrite: bool) -> None:
        self.folder = folder.absolute()
        self._outputs = [self.folder / name for name in outputs]
        self._overwrite = overwrite
        self._check()
        self._existed = self.folder.exists()
        try:
            lock = FolderLock.take(self.working_data / "lock")
        except OSError as error:
            raise InvalidInput.at(
                "--output", f"{folder} can't be written: {error.strerror}", "name another folder"
            ) from error
        if lock is None:
            raise InvalidInput.at("--output", f"another run is using {folder}")
        self._lock = lock
        # Left by an earlier run that didn't complete; `earlier_run` has checked that nothing of it is needed.
        shutil.rmtree(self.home, ignore_errors=True)

    @property
    def working_data(self) -> Path:
        return self.folder / WORKING_DATA

    @property
    def home(self) -> Path:
        """The folder of this run's embedded cluster."""
        return self.working_data / "cluster"

    @property
    def logs(self) -> Path:
        return self.folder / LOGS

    def hand_over_logs(self, source: Path, *, keep: bool) -> Path | None:
        """Put the job's logs in their place; returns it, or None if there are none.

        Raises:
            InvalidInput: something else has been put there meanwhile. Nothing has been moved.
        """
        if not source.is_dir():
            return None
        self._check_logs(hint=f"nothing is lost: all of the job is in {source.parent}")
        if self.logs.exists():
            shutil.rmtree(self.logs)
        if keep:
            shutil.copytree(source, self.logs, copy_function=link_or_copy, symlinks=True)
        else:
            source.rename(self.logs)
        (self.logs / _MARK).touch()
        return self.logs

    def add_logs(self, source: Path, name: str) -> None:
        """Put the logs of a step beside those of its pipeline, in a folder of this name."""
        target = self.logs / name
        for current, _, names in os.walk(source):
            place = target / Path(current).relative_to(source)
            place.mkdir(parents=True, exist_ok=True)
            for each in names:
                if not os.path.lexists(place / each):  # else the job has copied it there
                    link_or_copy(Path(current, each), place / each)

    def hand_over_output(self, source: Path, name: str = "") -> Path:
        """Put an output, a file or a folder, in its place; returns that.

        Args:
            name: that of the place, or its path below this folder; by default, its own name.

        Raises:
            InvalidInput: there is a file of that name, which is not to be replaced. The output stays where it is.
        """
        first, *rest = (name or source.name).split("/")
        target = self.folder.joinpath(f"{first}.output" if first in {LOGS, WORKING_DATA} else first, *rest)
        if rest:
            target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            for current, folders, names in os.walk(source):
                place = target / Path(current).relative_to(source)
                place.mkdir(exist_ok=True)
                links = [each for each in folders if Path(current, each).is_symlink()]
                for each in names + links:
                    self._hand_over_file(Path(current, each), place / each)
        else:
            self._hand_over_file(source, target)
        return target

    def _hand_over_file(self, source: Path, target: Path) -> None:
        temporary = target.with_name(f".parallelrun-{secrets.token_hex(6)}")
        link_or_copy(source, temporary)
        try:
            if self._overwrite:
                temporary.replace(target)
            else:
                _rename_to_free_name(temporary, target)
        except FileExistsError as error:
            raise InvalidInput.at(
                "--output", f"{target} is there already", f"nothing is lost: the output is {source}"
            ) from error
        finally:
            temporary.unlink(missing_ok=True)
        sync_folder(target.parent)

    def mark_handed_over(self) -> None:
        """Note that all outputs are in their place, so that the working data can be removed."""
        (self.home / _HANDED_OVER).touch()

    def correct_log(self, name: str, old: str, new: str) -> None:
        """Replace a path in a log by the one where the output is now. A kept copy of the log stays as it is."""
        log = self.logs / name
        replace_file(log, log.read_bytes().replace(os.fsencode(old), os.fsencode(new)))

    def close(self, *, keep: bool) -> None:
        """Release the folder, and remove the working data unless it is to be kept."""
        if not keep:
            shutil.rmtree(self.working_data, ignore_errors=True)
            if not self._existed:
                with contextlib.suppress(OSError):  # it isn't empty
                    self.folder.rmdir()
        self._lock.release()

    def _check(self) -> None:
        if self.folder.exists() and not self.folder.is_dir():
            raise InvalidInput.at("--output", f"{self.folder} is not a folder")
        for output in self._outputs:
            if output.name in {LOGS, WORKING_DATA}:
                raise InvalidInput.at("--output", f"{output.name!r} is the name of a folder next to the outputs")
            if output.exists() and not self._overwrite:
                raise InvalidInput.at(
                    "--output", f"{output} is there already", "name another folder, or replace it with --overwrite"
                )
        self._check_logs(hint="name another folder")

    def _check_logs(self, *, hint: str) -> None:
        if self.logs.exists() and not (self.logs / _MARK).exists():
            raise InvalidInput.at("--output", f"{self.logs} is there already, and was not written by a run", hint)


def is_handed_over(home: Path) -> bool:
    """Return whether all outputs of the run with this cluster folder are in their place."""
    return (home / _HANDED_OVER).exists()


def _rename_to_free_name(source: Path, target: Path) -> None:
    """Rename, but never over another file. Raises FileExistsError."""
    try:
        os.link(source, target)
    except OSError as error:
        if not has_no_links(error):
            raise
        if target.exists():
            raise FileExistsError(target) from error
        source.rename(target)
