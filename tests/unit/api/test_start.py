"""What the API imports before it can answer."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def test_the_api_starts_without_what_it_can_do_without(tmp_path: Path) -> None:
    """Its start-up is part of the wait for every job on an embedded cluster."""
    code = "import sys, parallelrun_api.main; print(*{name.partition('.')[0] for name in sys.modules})"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True, cwd=tmp_path)

    assert {"rq", "pandas", "numpy", "httpx", "docker", "rich"} & set(done.stdout.split()) <= {"rich"}
