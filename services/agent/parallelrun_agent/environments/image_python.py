"""The Python of the image that a node is of. Its workers use it, with its packages; the agent has one of its own."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from parallelrun_agent.users.worker_user import SAME_USER, WorkerUser
from parallelrun_core.service.children import Child, variables_for
from parallelrun_core.spec.python_versions import OLDEST_MINOR

_NAMES: Final = ("python3", "python")
_LONGEST_S: Final = 30.0
_ASK: Final = """
import json, os, sys
folders = [path for path in sys.path if os.path.basename(path) in ("site-packages", "dist-packages")]
there = [name for path in folders for name in sorted(os.listdir(path)) if name.endswith((".dist-info", ".egg-info"))]
print(json.dumps([list(sys.version_info[:3]), sys.executable, folders, there]))
"""


class NoPython(Exception):
    """The image has none that workers could use; the text says why."""


@dataclass(frozen=True)
class ImagePython:
    """An interpreter, and where its packages are."""

    executable: str
    packages: tuple[str, ...]
    """The folders with packages, in the order in which they are searched."""
    content: str
    """A hash that all images with this version of Python and these packages share, and no others."""

    @classmethod
    def find(cls, variables: Mapping[str, str] = os.environ, user: WorkerUser = SAME_USER) -> ImagePython:
        """The first one on the path of these variables.

        Args:
            user: who asks it. It runs what is in the image, which a job may have chosen.

        Raises:
            NoPython: there is none, it doesn't answer, or it is too old.
        """
        path = variables.get("PATH", os.defpath)
        executable = next(filter(None, (shutil.which(name, path=path) for name in _NAMES)), None)
        if executable is None:
            raise NoPython(f"the image has no python3 on its path {path}")
        version, executable, folders, packages = _asked(executable, variables, user)
        if version < [3, OLDEST_MINOR]:
            version_text = ".".join(map(str, version))
            raise NoPython(
                f"workers need Python 3.{OLDEST_MINOR} or newer; {executable} of the image is {version_text}"
            )
        text = json.dumps([version, executable, folders, packages]).encode()
        return cls(executable, tuple(folders), hashlib.sha256(text).hexdigest())


def _asked(
    executable: str, variables: Mapping[str, str], user: WorkerUser
) -> tuple[list[int], str, list[str], list[str]]:
    try:
        done = subprocess.run(
            [executable, "-c", _ASK],
            env=variables_for(Child.INTERPRETER, variables),
            stdin=subprocess.DEVNULL, capture_output=True, check=True, cwd="/", timeout=_LONGEST_S, **user.start,
        )  # fmt: skip
        version, executable, folders, packages = json.loads(done.stdout.splitlines()[-1])
    except subprocess.CalledProcessError as error:
        last = error.stderr.decode(errors="replace").strip().splitlines()[-1:]
        raise NoPython(f"{executable} of the image ends with {error.returncode}: {' '.join(last)}") from error
    except (subprocess.TimeoutExpired, OSError, ValueError, IndexError) as error:
        raise NoPython(f"{executable} of the image doesn't answer: {error}") from error
    return version, executable, folders, packages
