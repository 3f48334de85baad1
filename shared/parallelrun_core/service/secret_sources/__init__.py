"""The sources of secrets: one module each, named like the scheme of its URLs, with its class, a `SecretSource`, as
`SOURCE`; `folder` has no scheme.

There is no list of the sources: adding one is adding a module. A library that it needs is imported when a source is
made, as the module is read wherever variables are kept from scripts.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from parallelrun_core.service.secret_source import SecretSource  # whose modules rest on it

SETTING: Final = "PARALLELRUN_SECRETS_DIR"
_FOLDER: Final = "folder"
_URL: Final = re.compile("([A-Za-z][A-Za-z0-9+.-]*)://")


def schemes() -> list[str]:
    """All schemes of URLs that name a source, in order."""
    return sorted(module.name for module in iter_modules(__path__) if module.name != _FOLDER)


def source_at(place: str) -> SecretSource:
    """Return a new source, which has opened nothing yet: the folder or the URL that `secrets_dir` names.

    Raises:
        ValueError: there is no source of its scheme.
    """
    return _class_of(_scheme(checked_place(place)) or _FOLDER)(place)


def credentials() -> tuple[str, ...]:
    """Return what the variables begin with that let their owner into a source."""
    return tuple(name for each in schemes() for name in _class_of(each).credentials)


def checked_place(place: str) -> str:
    """Return the place itself.

    Raises:
        ValueError: there is no source of its scheme.
    """
    if (scheme := _scheme(place)) and scheme not in schemes():
        names = ", ".join(["a folder", *(f"{each}://…" for each in schemes())])
        raise ValueError(f"there is no source of secrets with {scheme}://: name one of these: {names}")
    return place


def absolute_place(place: str) -> str:
    """Return `secrets_dir` as processes with another current folder need it."""
    return os.path.abspath(place) if place and is_local_folder(place) else place


def is_local_folder(place: str) -> bool:
    return not _scheme(place)


def inherited_setting(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variable that names the source in an environment, if there is one, for other processes."""
    place = environment.get(SETTING)
    return {SETTING: absolute_place(place)} if place else {}


def _scheme(place: str) -> str:
    return match[1] if (match := _URL.match(place)) else ""


def _class_of(name: str) -> type[SecretSource]:
    source: type[SecretSource] = import_module(f"{__name__}.{name}").SOURCE
    return source
