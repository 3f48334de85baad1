"""What of a folder is its code."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from parallelrun.embedded.run_folder import RunFolder
from parallelrun_core.code.folder import code_files
from parallelrun_core.code.snapshots import snapshot_folder
from parallelrun_core.errors import InvalidInput


def made(folder: Path, names: Iterable[str]) -> Path:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("x")
    return folder


def names_in(folder: Path) -> set[str]:
    return {"/".join(parts) for parts, _, _ in code_files(folder)}


def test_earlier_runs_below_the_code_are_no_part_of_it_however_they_ended(tmp_path: Path) -> None:
    made(tmp_path, ["score.py", "lib/util.py"])
    sizes = set()
    for number in range(8):
        run = RunFolder(tmp_path / f"job-{number}", outputs=["rows.txt"], overwrite=False)
        snapshot_folder(tmp_path, run.home / "data" / "code", leave_out=run.home / "data")
        made(run.home, ["jobs/1/logs/job_result.txt"])
        has_failed = number % 2 == 0
        run.hand_over_logs(run.home / "jobs/1/logs", keep=has_failed)
        if not has_failed:
            made(run.folder, ["rows.txt"])
        run.close(keep=has_failed)
        sizes.add(len(names_in(tmp_path)))
    assert sizes == {2}


def test_a_run_whose_folder_is_the_code_folder_itself_leaves_the_code_in(tmp_path: Path) -> None:
    made(tmp_path, ["score.py", ".parallelrun/cluster/data/x", "logs/.parallelrun", "logs/job_result.txt"])
    assert names_in(tmp_path) == {"score.py"}


@pytest.mark.parametrize("sign", ["pyvenv.cfg", "conda-meta/history"])
def test_environments_are_left_out_whatever_their_name(tmp_path: Path, sign: str) -> None:
    made(tmp_path, ["score.py", f"tools/env/{sign}"])
    (tmp_path / "tools" / "env" / "python").symlink_to("/usr/bin/env")
    assert names_in(tmp_path) == {"score.py"}


def test_the_ignore_file_is_read_as_git_does(tmp_path: Path) -> None:
    made(tmp_path, ["score.py", "a.log", "keep.log", "lib/b.log", "data/x", "lib/data/x", "models/big.bin", "out"])
    (tmp_path / "out").unlink()
    (tmp_path / "out").symlink_to("/etc")
    (tmp_path / ".gitignore").write_text("# comment\n*.log\n!keep.log\n/data\nmodels/\nout\n")
    assert names_in(tmp_path) == {".gitignore", "score.py", "keep.log", "lib/data/x"}


def test_amlignore_goes_before_gitignore_and_only_at_the_top(tmp_path: Path) -> None:
    made(tmp_path, ["score.py", "a.txt", "b.txt", "lib/c.txt"])
    (tmp_path / ".gitignore").write_text("a.txt\n")
    (tmp_path / "lib" / ".amlignore").write_text("c.txt\n")
    (tmp_path / ".amlignore").write_text("b.txt\n.*ignore\n")
    assert names_in(tmp_path) == {"score.py", "a.txt", "lib/c.txt"}


def test_a_bad_pattern_is_told(tmp_path: Path) -> None:
    (tmp_path / ".amlignore").write_text("!\n")
    with pytest.raises(InvalidInput, match=r"\.amlignore"):
        names_in(tmp_path)
