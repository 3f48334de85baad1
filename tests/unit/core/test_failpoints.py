"""What may be armed: a death or an error at a named point, and nothing else."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

SCRIPT = "from parallelrun_core.service.failpoints import reach; reach('turn.before'); print('lives')"


def armed(text: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", SCRIPT],
        capture_output=True, check=False, env={**os.environ, "PARALLELRUN_FAILPOINTS": text}, text=True,
    )  # fmt: skip


@pytest.mark.parametrize("text", ["commit.fence=off", "turn.before=off", "turn.before=", "no.such=kill"])
def test_no_step_can_be_left_out_by_the_environment(text: str) -> None:
    done = armed(text)
    assert done.returncode == 1
    assert f"there is no failpoint {text}" in done.stderr


def test_a_process_may_die_or_fail_where_it_is_armed_to() -> None:
    assert armed("").stdout == "lives\n"
    assert armed("turn.after=kill").stdout == "lives\n"
    assert armed("turn.before=kill").returncode == -9
    assert "OSError" in armed("turn.before=raise").stderr
