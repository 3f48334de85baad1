"""`parallelrun.run`: a whole job from Python, where errors are raised."""

import sys
from pathlib import Path

import pytest

import parallelrun
from parallelrun import InvalidInput, JobFailed

pytestmark = [
    pytest.mark.integration,
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="agents need Linux"),
]


def test_a_failed_job_says_how_to_reuse_what_it_has_done(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "main.py").write_text(
        "def run(mini_batch):\n    return [1 / ('b' not in mini_batch[0][-5:])]\n"
    )
    (tmp_path / "data").mkdir()
    for name in "ab":
        (tmp_path / "data" / f"{name}.txt").touch()
    job = {"code": str(tmp_path / "src"), "entry_script": "main.py", "inputs": str(tmp_path / "data")}

    with pytest.raises(JobFailed) as caught:
        parallelrun.run(
            {**job, "mini_batch_size": 1, "allowed_failed_percent": 10},
            output=tmp_path / "out",
            processes=1,
            progress=False,
        )

    assert caught.value.__notes__[1].endswith(f"into another folder, add resume_from='{tmp_path}/out'")


def test_a_result_says_first_what_failed_in_a_job_that_completed(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "main.py").write_text(
        "def run(mini_batch):\n    return [1 / ('b' not in mini_batch[0][-5:])]\n"
    )
    (tmp_path / "data").mkdir()
    for name in "abc":
        (tmp_path / "data" / f"{name}.txt").touch()
    job = {"code": str(tmp_path / "src"), "entry_script": "main.py", "inputs": str(tmp_path / "data")}

    result = parallelrun.run(
        {**job, "mini_batch_size": 1, "run_max_try": 1}, output=tmp_path / "out", processes=1, progress=False
    )

    assert repr(result).startswith(
        "<RunResult completed, but 1 of 3 items failed (33 %): ZeroDivisionError in main.py:2; "
    )
    assert f"output='{tmp_path}/out/parallel_run_step.txt'" in repr(result)


def test_a_job_that_fails_is_an_error_with_its_cause_and_its_logs(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "main.py").write_text("def run(mini_batch):\n    raise ValueError('no good')\n")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a.txt").touch()
    job = {"code": str(tmp_path / "src"), "entry_script": "main.py", "inputs": str(tmp_path / "data")}
    with pytest.raises(InvalidInput, match="there is no file 'mian"):
        parallelrun.run({**job, "entry_script": "mian.py"}, output=tmp_path / "out")
    assert not (tmp_path / "out").exists()

    with pytest.raises(JobFailed) as caught:
        parallelrun.run(job, output=tmp_path / "out", processes=1, progress=False)

    assert caught.value.__notes__ == [f"logs: {tmp_path}/out/logs"]
    failure = caught.value.job.failure
    assert failure is not None
    assert failure.first_cause == "RUN_EXCEPTION: ValueError: no good"
    text = str(caught.value).splitlines()
    assert "first cause: RUN_EXCEPTION: ValueError: no good" in text
    assert Path(next(line for line in text if line.startswith("log: ")).removeprefix("log: ")).is_file()
    assert 'File "main.py", line 2, in run' in failure.traceback
    assert (tmp_path / "out" / "logs" / "job_result.txt").exists()
    assert capfd.readouterr() == ("", "")
