"""Bounds of what git fetches for an installer: the packages of a job, and whatever these name as submodules.

A repository is checked by its host when a job is submitted; its submodules are known once it is there, and git would
fetch them from wherever they are, with the keys and passwords of its user. So git is told which hosts there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

_ANY: Final = "*"
_REFUSED: Final = "host-not-listed:"
"""What begins the URL of a host that is not listed: a protocol that git has not."""


def git_variables(hosts: Sequence[str]) -> dict[str, str]:
    """Return the environment variables with which git fetches by https alone, from these hosts alone; `*`: from all.

    The configuration of git's user counts as ever: it may name other places for these hosts.
    """
    settings = [
        ("protocol.allow", "never"),
        ("protocol.https.allow", "always"),
        ("protocol.file.allow", "user"),  # the installer's own copies; no submodules
    ]
    if _ANY not in hosts:
        # The longest beginning decides; `https::` begins the same in another way.
        settings.append((f"url.{_REFUSED}.insteadOf", "https:"))
        settings += [(f"url.https://{host}/.insteadOf", f"https://{host}/") for host in hosts]
    named = {f"GIT_CONFIG_KEY_{number}": name for number, (name, _) in enumerate(settings)}
    values = {f"GIT_CONFIG_VALUE_{number}": value for number, (_, value) in enumerate(settings)}
    return {"GIT_CONFIG_COUNT": str(len(settings)), **named, **values}
