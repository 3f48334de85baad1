"""The golden folders of earlier releases, as a cluster would find them."""

from __future__ import annotations

import shutil
from pathlib import Path

from parallelrun_core.folder.job_folder import JobFolder
from tests.golden.build import JOB

RELEASES = sorted(path.name for path in Path(__file__).parent.iterdir() if path.name.startswith("v"))


def opened(release: str, root: Path) -> JobFolder:
    """A copy below `root`, with the empty folders that git doesn't keep."""
    shutil.copytree(Path(__file__).parent / release, root, dirs_exist_ok=True)
    folder = JobFolder(root, JOB)
    for path in (folder.outputs, folder.logs):
        path.mkdir(exist_ok=True)
    return folder
