"""Decides what a person may see and change: by the scopes of their token, and by whose a thing is."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from anyio.to_thread import run_sync

from parallelrun_api.people.person import CURRENT, Person
from parallelrun_core.assets.catalog import Catalog
from parallelrun_core.endpoints.store import EndpointStore
from parallelrun_core.errors import CorruptLog, InvalidInput, NewerSchema, NotFound, ParallelRunError
from parallelrun_core.folder.job_folder import job_folder
from parallelrun_core.ids import is_job_id
from parallelrun_core.lru_cache import LruCache
from parallelrun_core.retention.marks import check_not_deleted
from parallelrun_core.schedules.store import ScheduleStore

_SAFE_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_OF_ALL: Final = frozenset({"asset", "datastore", "limit"})
"""Everybody may see these: they have names so that the jobs of others can name them."""
_NOUNS: Final = {
    "job_id": "job", "schedule": "schedule", "endpoint": "batch endpoint", "datastore": "datastore", "limit": "limit",
}  # fmt: skip
"""The things in paths of requests, by the parameters with their names."""
_JOBS: Final = 10_000


class NotAllowed(ParallelRunError, code="not_allowed", http_status=403):
    """The token may not do this, or the thing belongs to somebody else."""


class Subject(NamedTuple):
    """A thing that belongs to somebody."""

    noun: str
    """job, schedule, batch endpoint, asset, datastore or limit."""
    name: str
    kind: str = ""
    """The type of an asset."""


class Access:
    """Decides for one server. Safe to share between threads."""

    def __init__(self, root: Path) -> None:
        self._root: Final = root
        self._schedules: Final = ScheduleStore(root)
        self._endpoints: Final = EndpointStore(root)
        self._assets: Final = Catalog(root)
        self._jobs: Final = LruCache[str](_JOBS)

    async def check(
        self, method: str, subject: Subject | None, *, is_read: bool = False, makes_own: bool = False
    ) -> None:
        """Make sure that the person of this request may make it.

        Args:
            subject: what it is about, if that belongs to somebody.
            is_read: it changes nothing, whatever the method is.
            makes_own: it makes something of one's own out of the subject, and doesn't change it.

        Raises:
            NotAllowed: they may not; names the owner.
            NotFound: it is somebody else's, and people see only their own.
        """
        person = CURRENT.get()
        if person.is_admin:
            return
        is_change = method not in _SAFE_METHODS and not is_read
        _check_scopes(person, is_change=is_change)
        if subject is None or (person.sees_all and (not is_change or makes_own)):
            return
        owner = await run_sync(self.owner_of, subject)
        if owner is None:
            return
        if not person.may_see(owner) and subject.noun not in _OF_ALL:
            raise NotFound(f"There is no {subject.noun} {subject.name[:80]!r}.")
        if is_change and not makes_own and not person.may_change(owner):
            raise not_owned(subject, owner)

    def check_job_seen(self, job_id: str) -> None:
        """Make sure that the person of this request may see a job.

        Raises:
            NotFound: it is somebody else's, and people see only their own; or it was deleted.
        """
        if not self.sees_job(job_id):
            raise NotFound(f"There is no job {job_id[:80]!r}.")
        self.check_job_kept(job_id)

    def sees_job(self, job_id: str) -> bool:
        """Return whether the person of this request sees a job; of one that isn't there, the answer is yes."""
        person = CURRENT.get()
        if person.only_owner is None:
            return True
        owner = self.owner_of(Subject("job", job_id))
        return owner is None or person.may_see(owner)

    def check_job_kept(self, job_id: str) -> None:
        """Make sure that nobody has deleted a job. Its folder stays until it can't be restored any more, so all that is
        in it has to be refused from the moment of the mark, in every process: nothing of this is cached.

        Raises:
            NotFound: somebody has; says how to get it back.
        """
        if is_job_id(job_id):
            check_not_deleted(job_folder(self._root, job_id))

    def owner_of(self, subject: Subject) -> str | None:
        """The owner of a thing; None: there is no such thing, or nobody can read whose it is."""
        try:
            match subject.noun:
                case "job":
                    owner = self._jobs.get(subject.name)
                    if owner is None:
                        owner = self._jobs.put(subject.name, job_folder(self._root, subject.name).record().owner)
                    return owner
                case "schedule":
                    return self._schedules.get(subject.name).owner
                case "batch endpoint":
                    return self._endpoints.get(subject.name).owner
                case "datastore" | "limit":
                    return ""  # they are the cluster's
                case "asset":
                    return self._assets.owner_of(subject.kind, subject.name)
                case noun:
                    raise ValueError(f"whose a {noun} is, nobody has said here")
        except (NotFound, NewerSchema, CorruptLog, InvalidInput):
            return None  # the route says what is wrong


def subject_of(path_params: Mapping[str, str]) -> Subject | None:
    """Return what a request to this path is about, if that belongs to somebody."""
    if asset := path_params.get("asset"):
        return Subject("asset", asset, path_params.get("kind", ""))
    subjects = (Subject(noun, name) for parameter, noun in _NOUNS.items() if (name := path_params.get(parameter)))
    return next(subjects, None)


def not_owned(subject: Subject, owner: str) -> NotAllowed:
    """The error for what belongs to somebody else."""
    owner_words = f"{owner!r}: ask them" if owner else "whoever runs this server: ask them"
    return NotAllowed(
        f"The {subject.noun} {subject.name[:80]!r} belongs to {owner_words}, or somebody with the scope admin."
    )


def _check_scopes(person: Person, *, is_change: bool) -> None:
    if is_change and "submit" not in person.scopes:
        scopes = ", ".join(sorted(person.scopes)) or "none"
        raise NotAllowed(
            f"The token {person.name!r} has the scope {scopes}: it may not submit or change anything. An admin of this "
            "server can make one that may: `parallelrun token create NAME --scope submit`."
        )
