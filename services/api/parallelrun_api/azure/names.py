"""Names of jobs that clients gave, and what those sent.

A file for each name, and one for each job, below `azure/jobs` of the root folder. A job that somebody submitted in
another way has no file: its id is its name here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from parallelrun_core.durable_files import replace_durably, write_once
from parallelrun_core.errors import Conflict, InvalidInput, NotFound
from parallelrun_core.ids import is_job_id
from parallelrun_core.layout import PRIVATE_FILE, PRIVATE_FOLDER

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,254}")


def checked_name(name: str) -> str:
    """The name of a job or an asset, which becomes part of a path.

    Raises:
        InvalidInput: nothing can have this name.
    """
    if not _NAME.fullmatch(name) or len(name) > 200:
        raise InvalidInput.at("name", f"{name[:80]!r} is not a name", "letters, digits, '_', '.' and '-'")
    return name


class NameStore:
    """The names below a root folder. Safe to share between threads and processes.

    Args:
        check_seen: raises NotFound for the id of a job that the person of the request may not see.
    """

    def __init__(self, root: Path, *, check_seen: Callable[[str], None] = lambda _: None) -> None:
        self._check_seen = check_seen
        self._names = root / "azure" / "jobs" / "names"
        self._jobs = root / "azure" / "jobs" / "ids"

    def job_id(self, name: str) -> str:
        """The id of the job that a client calls by this name.

        Raises:
            NotFound: there is none that this person may see.
        """
        job_id = self._id_of(name)
        self._check_seen(job_id)
        return job_id

    def _id_of(self, name: str) -> str:
        if is_job_id(name):
            return name
        try:
            job_id = json.loads((self._names / f"{checked_name(name)}.json").read_bytes())["job_id"]
        except (FileNotFoundError, InvalidInput, ValueError, KeyError) as error:
            raise NotFound(f"There is no job {name[:80]!r}.") from error
        return str(job_id)

    def is_taken(self, name: str) -> bool:
        return is_job_id(name) or (self._names / f"{checked_name(name)}.json").exists()

    def remember(self, name: str, job_id: str, sent: dict[str, Any]) -> None:
        """Give a job a name, durably, with what the client has sent.

        Raises:
            Conflict: another job has the name.
        """
        for folder in (self._names, self._jobs):
            folder.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
        if not (self._jobs / f"{job_id}.json").exists():
            self._write(job_id, {"name": name, "sent": sent})
        try:
            text = json.dumps({"job_id": job_id}).encode()
            write_once(self._names / f"{checked_name(name)}.json", text, mode=PRIVATE_FILE)
        except FileExistsError as error:
            if self._id_of(name) != job_id:  # also one that this person may not see
                raise Conflict(f"There is a job {name[:80]!r} already.") from error

    def of(self, job_id: str) -> dict[str, Any]:
        """Return what is remembered of a job: `name`, `sent`, `is_archived` and `changed`, as far as they are known."""
        try:
            value = json.loads((self._jobs / f"{job_id}.json").read_bytes())
        except (FileNotFoundError, ValueError):
            return {}
        return value if isinstance(value, dict) else {}

    def change(self, job_id: str, **fields: object) -> None:
        """Remember something else of a job, durably. Of two who do so at the same time, one wins."""
        self._jobs.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
        self._write(job_id, {**self.of(job_id), **fields})

    def _write(self, job_id: str, value: dict[str, Any]) -> None:
        replace_durably(self._jobs / f"{job_id}.json", json.dumps(value).encode(), mode=PRIVATE_FILE)
