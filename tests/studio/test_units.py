"""The pure functions of the page have tests of their own, in TypeScript: `studio/tests`, which Node runs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from typing import get_args

import pytest

from parallelrun_core.wire.outcome import ErrorCategory
from tests.studio.chromium import ROOT

STUDIO = ROOT / "studio"


def test_functions_of_the_page_do_what_their_tests_say() -> None:
    if not shutil.which("node") or not (STUDIO / "node_modules" / "ready").exists():
        reason = "npm has not installed what the page is built with (make studio/node_modules/ready)"
        pytest.fail(reason) if os.environ.get("CI") else pytest.skip(reason)
    answer = subprocess.run(["node", "test.mjs"], cwd=STUDIO, capture_output=True, text=True, timeout=100, check=False)

    passed = re.search(r"pass (\d+)", answer.stdout)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert passed is not None
    assert int(passed[1]) > 0


def test_each_kind_of_error_has_words_on_the_page() -> None:
    words = (STUDIO / "src" / "words" / "errors.ts").read_text()
    assert [each for each in get_args(ErrorCategory) if f"  {each}: " not in words] == []
