"""A build of an environment that compiles what was installed with the environment's own interpreter."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from unittest.mock import patch

from parallelrun_agent.environments import build


def _compile(folder: Path, _: str) -> None:
    command = [str(folder / "bin" / "python"), "-m", "compileall", "-q", str(folder / "lib")]
    subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=60)


if __name__ == "__main__":
    with patch.object(build, "_compile", _compile):
        sys.exit(build.main())
