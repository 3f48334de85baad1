"""Versions of Python that an environment asks for, beside those of the workers and of this process."""

from __future__ import annotations

import re
import sys
from typing import Final

OLDEST_MINOR: Final = 8
"""The workers need Python 3.8 or newer."""
PLAIN_VERSION: Final = re.compile(r"[0-9]+(\.[0-9]+){0,2}")


def is_too_old(version: str) -> bool:
    """Return whether all that a version of Python, as `python_of` has it, admits is too old for the workers."""
    if not version:
        return False
    from packaging.specifiers import SpecifierSet
    from packaging.version import Version

    oldest = Version(f"3.{OLDEST_MINOR}")
    newest = Version("3.99")
    for each in SpecifierSet(f"=={version}.*" if PLAIN_VERSION.fullmatch(version) else version):
        named = Version(each.version.removesuffix(".*"))
        if not any(each.contains(other, prereleases=True) for other in (oldest, newest, max(named, oldest))):
            return True
    return False


def may_be_newer(version: str) -> bool:
    """Return whether this may be a version of Python whose syntax the one that runs this can't parse: a newer one, one
    that can't be told, or Python 2."""
    match = re.match(r"3\.(\d+)", version) if PLAIN_VERSION.fullmatch(version) else None
    return int(match[1]) > sys.version_info.minor if match else bool(version)
