"""The recipe of an environment: all that it depends on, who may share it, and who builds it.

An environment whose whole content is known by hashes is the same for everybody, and may be everybody's. Any other one
is shared by the jobs of one owner only: a package that somebody has offered under a name that another one asks for
stays with whoever was taken in by it.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from parallelrun_agent.users.worker_user import SAME_USER, WorkerUser
from parallelrun_core.spec.requirements import parse_requirement

if TYPE_CHECKING:
    from parallelrun_agent.environments.image_python import ImagePython
    from parallelrun_agent.users.choice import Uids
    from parallelrun_core.spec import Environment

_FORMAT: Final = 2
"""Of the folders of environments: those of another one are not used."""


@dataclass(frozen=True)
class Recipe:
    """The recipe of an environment. Its hash names the folder that it is in."""

    python: str
    """The version that is asked for, or the agent's interpreter."""
    requirements: list[str]
    """Lines that `spec/requirements.py` has written; no text of a job is among them."""
    worker: str
    """The folder of the worker's own package, which is linked into the environment."""
    packages: tuple[str, ...] = ()
    """The folders of an image's packages, which are found after those that are installed."""
    image: str = ""
    """A hash of the image's Python and packages."""
    indexes: tuple[str, ...] = ()
    """Arguments of the installer that say where packages are."""
    owner: str = ""
    """The owner whose jobs use it; nobody in particular when it is locked."""
    is_locked: bool = False
    """Nothing is installed but wheels with the hashes that the requirements name."""

    def folder(self, cache: Path, uids: Uids | None = None) -> Path:
        """Return where it is, or is to be. That of another builder is another one."""
        text = json.dumps([_FORMAT, self.builder(uids).uid, *vars(self).values()]).encode()
        return cache / "environments" / hashlib.sha256(text).hexdigest()[:32]

    def builder(self, uids: Uids | None) -> WorkerUser:
        """Return the user that builds it, of those that the agent may become; its own user if there are none."""
        if uids is None:
            return SAME_USER
        return WorkerUser(uids.locked_builder if self.is_locked else uids.builder_of(self.owner))


def recipes_of(
    environment: Environment, owner: str, image: ImagePython | None = None, hosts: Sequence[str] = ("*",)
) -> list[Recipe]:
    """Return what a job of this owner asks for, upon what the node's image has: the first of these that can be built.

    Args:
        hosts: those that the operator had listed when the job was accepted.

    Raises:
        ValueError: it asks for what is no longer installed; only a job of an earlier release does. Or it names a URL on
            another host.
    """
    for url, field in environment.urls_elsewhere(hosts).items():
        raise ValueError(f"{url} in {field} is on a host that the operator has not listed (PARALLELRUN_PACKAGE_HOSTS)")
    worker = find_spec("parallelrun_worker")
    if worker is None or worker.origin is None:
        raise RuntimeError("the worker is not installed")
    requirements = environment.requirements
    recipe = Recipe(
        python=image.executable if image else environment.python or sys.executable,
        requirements=requirements,
        worker=str(Path(worker.origin).parent),
        packages=image.packages if image else (),
        image=image.content if image else "",
        indexes=tuple(_index_arguments(environment)),
        owner=owner,
    )
    if not all(parse_requirement(line).is_locked for line in requirements):
        return [recipe]
    # A package that another one needs may lack a hash, or a package its wheel.
    return [replace(recipe, owner="", is_locked=True), recipe]


def _index_arguments(environment: Environment) -> Iterator[str]:
    """Each value is a URL that was made anew from what was read (`spec/requirements.py`)."""
    if environment.index_url:
        yield f"--default-index={environment.index_url}"
    yield from (f"--index={url}" for url in environment.extra_index_urls)
    yield from (f"--find-links={url}" for url in environment.find_links)
    if environment.prereleases:
        yield "--prerelease=allow"
