"""`python -m tests.twins.launch MECHANISM MODULE ARGUMENT…`: a service without one of its mechanisms, nor have it the
processes that it starts with `parallelrun_core.service.launch`.
"""

from __future__ import annotations

import subprocess
import sys
from typing import Any
from unittest.mock import patch

from parallelrun_core.service import launch
from tests.twins.sabotage import without

_OURS = "tests.twins.launch"


class _Started(subprocess.Popen[Any]):
    """A process, without the mechanism if it is one of a service's own."""

    mechanism = ""

    def __init__(self, command: Any, *arguments: Any, **options: Any) -> None:
        if launch.__name__ in command:
            at = command.index(launch.__name__) + 1
            command = [sys.executable, "-m", _OURS, self.mechanism, *command[at:]]
        super().__init__(command, *arguments, **options)


if __name__ == "__main__":
    _Started.mechanism = sys.argv.pop(1)
    with without(_Started.mechanism), patch.object(subprocess, "Popen", _Started):
        launch.main()
