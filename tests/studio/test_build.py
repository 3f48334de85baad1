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
MOST_BYTES_AT_FIRST = 62_000
"""Of all that a browser loads for the first look, compressed."""
MOST_BYTES_LATER = 16_000
"""Of a file that it loads when a view is opened which few people open, compressed."""


MOON_TAB = """
import type { JSX } from "preact";
import type { TabProps } from "./tab_props";

export const Moon = ({ job }: TabProps): JSX.Element => <p>the moon over {job.id}</p>;
"""


def built(sources: Path, static: Path) -> dict[str, bytes]:
    """The files that sources make, by name, once their types are checked."""
    if not (SOURCES / "node_modules" / "ready").exists() or shutil.which("node") is None:
        if os.environ.get("CI"):
            pytest.fail("make studio/node_modules/ready has not run")
        pytest.skip("what builds the page is missing (needs npm: make studio/node_modules/ready)")
    for command in (["node_modules/.bin/tsc", "--noEmit"], ["node", "build.mjs", str(static)]):
        done = subprocess.run(command, cwd=sources, capture_output=True, check=False, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    return {path.name: path.read_bytes() for path in static.iterdir()}


def test_what_is_shipped_is_what_the_sources_make(tmp_path: Path) -> None:
    shipped = {path.name: path.read_bytes() for path in STATIC.iterdir()}
    assert shipped == built(SOURCES, tmp_path / "static"), "run `make studio`, and commit what it makes"


def test_a_tab_of_a_job_is_a_file_and_its_line_in_the_list(tmp_path: Path) -> None:
    sources = tmp_path / "studio"
    shutil.copytree(SOURCES, sources, ignore=shutil.ignore_patterns("node_modules"))
    (sources / "node_modules").symlink_to(SOURCES / "node_modules")
    (sources / "src/views/job/moon.tsx").write_text(MOON_TAB)
    tabs = sources / "src/views/job/tabs.tsx"
    text = tabs.read_text().replace(
        "const OF_ALL: Tab[] = [", 'const OF_ALL: Tab[] = [{ path: "moon", title: "Moon", view: Moon },'
    )
    tabs.write_text(f'import {{ Moon }} from "./moon";\n{text}')
    assert any(b"the moon over" in content for content in built(sources, tmp_path / "static").values())


def test_the_page_is_small() -> None:
    page = (STATIC / "index.html").read_text()
    sizes = {path.name: len(gzip.compress(path.read_bytes(), 9)) for path in STATIC.iterdir()}
    sizes.pop("licenses.txt")
    at_first = {name: size for name, size in sizes.items() if name == "index.html" or f'"/{name}"' in page}
    assert {"index.html", "app.css", "app.js"} < set(at_first)
    assert sum(at_first.values()) <= MOST_BYTES_AT_FIRST, at_first
    later = {name: size for name, size in sizes.items() if name not in at_first}
    assert max(later.values()) <= MOST_BYTES_LATER, later


def test_the_first_file_imports_nothing_that_the_page_does_not_name() -> None:
    page, script = (STATIC / "index.html").read_text(), (STATIC / "app.js").read_text()
    imported = re.findall(r"(?:^|;)import\b[^;\"(]*\"\./([^\"]+)\"", script)
    assert imported
    assert all(f'<link rel="modulepreload" href="/{each}">' in page for each in imported)


def test_the_page_has_nothing_from_elsewhere_and_no_script_in_it() -> None:
    page = (STATIC / "index.html").read_text()
    sources = re.findall(r"(?:src|href)=\"(?!data:)([^\"]*)", page)
    assert {each.removeprefix("/") for each in sources} <= {path.name for path in STATIC.iterdir()}
    assert re.search(r"<style|\sstyle=|<script(?![^>]*src=)|\son\w+=", page) is None


def test_what_the_page_is_built_with_names_no_registry() -> None:
    lock = (SOURCES / "package-lock.json").read_text()
    assert "resolved" not in lock
    assert "integrity" in lock
