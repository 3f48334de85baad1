"""The folder that a run leaves behind: nothing of the user's is lost, and nothing partial is seen."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from parallelrun.background.lock import FolderLock, is_locked
from parallelrun.embedded.earlier_run import check_nothing_is_lost
from parallelrun.embedded.run_folder import RunFolder
from parallelrun.embedded.services import ClusterLayout
from parallelrun.errors import InvalidInput
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.folder.records import JobResult
from parallelrun_core.wire.progress import Progress
from parallelrun_core.wire.states import JobState

JOB_ID = "job_01kav3x8n2h7q5m9c4t6"


def job_with(folder: RunFolder, rows: str = "row\n") -> tuple[Path, Path]:
    """What the cluster leaves below its home: the output file and the folder with logs."""
    job = folder.home / "data" / "jobs" / JOB_ID
    (job / "logs" / "user").mkdir(parents=True)
    (job / "logs" / "user" / "log.txt").write_text("log")
    (job / "out.txt").write_text(rows)
    return job / "out.txt", job / "logs"


def run_in(path: Path, *, overwrite: bool = False, keep: bool = False, rows: str = "row\n") -> RunFolder:
    folder = RunFolder(path, outputs=["out.txt"], overwrite=overwrite)
    output, logs = job_with(folder, rows)
    folder.hand_over_logs(logs, keep=keep)
    folder.hand_over_output(output)
    folder.close(keep=keep)
    return folder


def test_output_and_logs_are_all_that_is_left(tmp_path: Path) -> None:
    run_in(tmp_path / "out")

    assert (tmp_path / "out" / "out.txt").read_text() == "row\n"
    assert (tmp_path / "out" / "logs" / "user" / "log.txt").read_text() == "log"
    assert sorted(entry.name for entry in (tmp_path / "out").iterdir()) == ["logs", "out.txt"]


def test_working_data_that_is_kept_is_complete(tmp_path: Path) -> None:
    folder = run_in(tmp_path / "out", keep=True)

    job = folder.home / "data" / "jobs" / JOB_ID
    assert (job / "logs" / "user" / "log.txt").read_text() == "log"
    assert os.path.samefile(job / "out.txt", tmp_path / "out" / "out.txt")


def test_a_folder_that_can_not_be_created_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(InvalidInput, match="can't be written: Not a directory") as caught:
        RunFolder(tmp_path / "file" / "out", outputs=["out.txt"], overwrite=False)

    assert caught.value.problems[0].pointer == "--output"


def test_an_output_that_is_there_is_not_touched(tmp_path: Path) -> None:
    run_in(tmp_path / "out")

    with pytest.raises(InvalidInput, match="is there already") as caught:
        RunFolder(tmp_path / "out", outputs=["out.txt"], overwrite=False)

    assert "--overwrite" in caught.value.problems[0].hint
    assert (tmp_path / "out" / "out.txt").read_text() == "row\n"


def test_overwriting_keeps_the_old_output_until_the_new_one_is_complete(tmp_path: Path) -> None:
    run_in(tmp_path / "out", rows="old\n")

    folder = RunFolder(tmp_path / "out", outputs=["out.txt"], overwrite=True)
    output, _ = job_with(folder, "new\n")
    assert (tmp_path / "out" / "out.txt").read_text() == "old\n"
    folder.hand_over_output(output)

    assert (tmp_path / "out" / "out.txt").read_text() == "new\n"


def test_an_output_that_came_up_meanwhile_is_not_touched(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "out", outputs=["out.txt"], overwrite=False)
    output, _ = job_with(folder)
    (tmp_path / "out" / "out.txt").write_text("somebody's")

    with pytest.raises(InvalidInput, match=r"out\.txt is there already"):
        folder.hand_over_output(output)

    assert (tmp_path / "out" / "out.txt").read_text() == "somebody's"
    assert output.read_text() == "row\n"


def test_logs_of_an_earlier_run_are_replaced_but_never_those_of_the_user(tmp_path: Path) -> None:
    run_in(tmp_path / "out")
    (tmp_path / "out" / "logs" / "old.txt").touch()
    run_in(tmp_path / "out", overwrite=True)
    assert not (tmp_path / "out" / "logs" / "old.txt").exists()

    (tmp_path / "mine" / "logs").mkdir(parents=True)
    (tmp_path / "mine" / "logs" / "diary.txt").write_text("mine")
    with pytest.raises(InvalidInput, match="logs is there already"):
        RunFolder(tmp_path / "mine", outputs=["out.txt"], overwrite=True)
    assert (tmp_path / "mine" / "logs" / "diary.txt").read_text() == "mine"


def test_logs_that_came_up_meanwhile_are_not_touched(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "out", outputs=["out.txt"], overwrite=False)
    output, logs = job_with(folder)
    (tmp_path / "out" / "logs").mkdir()
    (tmp_path / "out" / "logs" / "diary.txt").write_text("mine")

    with pytest.raises(InvalidInput, match="was not written by a run") as caught:
        folder.hand_over_logs(logs, keep=False)

    assert str(output.parent) in caught.value.problems[0].hint
    assert (tmp_path / "out" / "logs" / "diary.txt").read_text() == "mine"
    assert (logs / "user" / "log.txt").exists()


def completed_in(path: Path) -> tuple[RunFolder, Path]:
    """A run whose job has completed; and a file that the script has written, which is no named output."""
    folder = RunFolder(path, outputs=[], overwrite=False)
    job = JobFolder(ClusterLayout(home=folder.home).root, JOB_ID)
    job.outputs.mkdir(parents=True)
    (job.path / "job.json").write_text("{}")
    (job.outputs / "summary.csv").write_text("hours of work")
    result = JobResult(job_id=JOB_ID, state=JobState.COMPLETED, started=None, ended=1.0, progress=Progress())
    job.conclude(result)
    return folder, job.outputs / "summary.csv"


def test_outputs_that_could_not_be_handed_over_outlast_the_next_run(tmp_path: Path) -> None:
    (tmp_path / "summary.csv").write_text("of an earlier run")
    folder, output = completed_in(tmp_path)
    with pytest.raises(InvalidInput, match="is there already") as refused:
        folder.hand_over_output(output)
    folder.close(keep=True)

    with pytest.raises(InvalidInput, match="could not hand over") as caught:
        check_nothing_is_lost(tmp_path)

    assert refused.value.problems[0].hint.endswith(str(output))
    assert str(output.parent) in caught.value.problems[0].message
    output.rename(tmp_path / "mine.csv")
    check_nothing_is_lost(tmp_path)


def test_working_data_that_was_only_kept_does_not_block_the_next_run(tmp_path: Path) -> None:
    folder, output = completed_in(tmp_path)
    folder.hand_over_output(output)
    folder.mark_handed_over()
    folder.close(keep=True)

    check_nothing_is_lost(tmp_path)

    assert output.exists()


def test_two_runs_do_not_share_a_folder(tmp_path: Path) -> None:
    first = RunFolder(tmp_path / "out", outputs=["out.txt"], overwrite=False)

    with pytest.raises(InvalidInput, match="another run is using"):
        RunFolder(tmp_path / "out", outputs=["other.txt"], overwrite=False)

    first.close(keep=False)
    RunFolder(tmp_path / "out", outputs=["other.txt"], overwrite=False).close(keep=False)


RUN = """
import sys
from pathlib import Path
from parallelrun.embedded.run_folder import RunFolder
run = RunFolder(Path(sys.argv[1]), outputs=["out.txt"], overwrite=False)
run.home.mkdir()
(run.home / "rows").touch()
print(run.home, flush=True)
sys.stdin.read()
"""


def test_what_a_killed_run_left_is_cleared_away(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", RUN, str(tmp_path / "out")], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as killed:
        assert killed.stdout is not None
        home = Path(killed.stdout.readline().decode().strip())
        assert (home / "rows").exists()
        killed.kill()

    next_run = RunFolder(tmp_path / "out", outputs=["out.txt"], overwrite=False)

    assert not next_run.home.exists()
    next_run.close(keep=False)


def test_a_folder_made_for_nothing_is_removed_again(tmp_path: Path) -> None:
    RunFolder(tmp_path / "out", outputs=["out.txt"], overwrite=False).close(keep=False)
    assert not (tmp_path / "out").exists()

    (tmp_path / "there").mkdir()
    RunFolder(tmp_path / "there", outputs=["out.txt"], overwrite=False).close(keep=False)
    assert (tmp_path / "there").is_dir()


@pytest.mark.parametrize("name", ["logs", ".parallelrun"])
def test_an_output_can_not_take_the_place_of_a_folder(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidInput, match="is the name of a folder"):
        RunFolder(tmp_path, outputs=[name], overwrite=False)


def test_a_file_is_not_a_folder(tmp_path: Path) -> None:
    (tmp_path / "out").touch()

    with pytest.raises(InvalidInput, match="is not a folder"):
        RunFolder(tmp_path / "out", outputs=["out.txt"], overwrite=False)


def test_a_filesystem_without_hard_links_will_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_link(*_: object, **__: object) -> None:
        raise OSError(errno.EPERM, "no links here")

    monkeypatch.setattr(os, "link", no_link)

    run_in(tmp_path / "out", keep=True)
    assert (tmp_path / "out" / "out.txt").read_text() == "row\n"

    folder = RunFolder(tmp_path / "other", outputs=["out.txt"], overwrite=False)
    output, _ = job_with(folder)
    (tmp_path / "other" / "out.txt").write_text("somebody's")
    with pytest.raises(InvalidInput, match=r"out\.txt is there already"):
        folder.hand_over_output(output)


def test_a_lock_is_for_one_and_asking_does_not_take_it(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "lock"
    assert not is_locked(path)
    lock = FolderLock.take(path)
    assert lock is not None
    assert is_locked(path)
    assert is_locked(path)
    assert FolderLock.take(path) is None

    lock.release()
    lock.release()

    assert not is_locked(path)


def test_a_lock_on_a_file_that_was_removed_meanwhile_is_taken_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import fcntl

    path = tmp_path / "lock"
    real = fcntl.flock
    removed: list[Path] = []

    def remove_first(fd: int, operation: int) -> None:
        if not removed:
            removed.append(path)
            path.unlink()
        real(fd, operation)

    monkeypatch.setattr(fcntl, "flock", remove_first)

    lock = FolderLock.take(path)

    assert lock is not None
    assert path.exists()
    monkeypatch.undo()
    assert is_locked(path)


def test_links_in_the_folder_of_an_output_are_handed_over_as_links(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "out", outputs=[], overwrite=False)
    made = folder.home / "model"
    (made / "checkpoint-3").mkdir(parents=True)
    (made / "checkpoint-3" / "weights").write_text("3")
    (made / "latest").symlink_to("checkpoint-3")
    (made / "best").symlink_to("checkpoint-3/weights")

    target = folder.hand_over_output(made)
    folder.close(keep=False)

    assert (target / "latest").readlink() == Path("checkpoint-3")
    assert (target / "latest" / "weights").read_text() == "3"
    assert (target / "best").readlink() == Path("checkpoint-3/weights")
    assert sorted(path.name for path in target.iterdir()) == ["best", "checkpoint-3", "latest"]
