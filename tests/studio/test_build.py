"""What is shipped of the web page is what its sources make, byte by byte."""

from __future__ import annotations

import gzip
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "studio"
STATIC = ROOT / "services" / "api" / "parallelrun_api" / "studio" / "static"
MOST_BYTES = 69_000
"""Of all that a browser loads, compressed."""


def test_what_is_shipped_is_what_the_sources_make(tmp_path: Path) -> None:
    if not (SOURCES / "node_modules" / "ready").exists() or shutil.which("node") is None:
        if os.environ.get("CI"):
            pytest.fail("make studio/node_modules/ready has not run")
        pytest.skip("what builds the page is missing (needs npm: make studio/node_modules/ready)")
    for command in (["node_modules/.bin/tsc", "--noEmit"], ["node", "build.mjs", str(tmp_path / "static")]):
        done = subprocess.run(command, cwd=SOURCES, capture_output=True, check=False, text=True)
        assert done.returncode == 0, done.stdout + done.stderr

    built = {path.name: path.read_bytes() for path in (tmp_path / "static").iterdir()}
    shipped = {path.name: path.read_bytes() for path in STATIC.iterdir()}
    assert shipped == built, "run `make studio`, and commit what it makes"


def test_the_page_is_small() -> None:
    sizes = {path.name: len(gzip.compress(path.read_bytes(), 9)) for path in STATIC.iterdir()}
    sizes.pop("licenses.txt")
    assert sum(sizes.values()) <= MOST_BYTES, sizes


def test_the_page_has_nothing_from_elsewhere_and_no_script_in_it() -> None:
    page = (STATIC / "index.html").read_text()
    assert re.findall(r"(?:src|href)=\"(?!/app\.|data:)[^\"]*", page) == []
    assert re.search(r"<style|\sstyle=|<script(?![^>]*src=)|\son\w+=", page) is None


def test_what_the_page_is_built_with_names_no_registry() -> None:
    lock = (SOURCES / "package-lock.json").read_text()
    assert "resolved" not in lock
    assert "integrity" in lock
