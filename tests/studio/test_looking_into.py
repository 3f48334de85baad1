"""What a mini-batch read and what a job has made is looked into: lines of texts, pictures, tries side by side."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path
from typing import Final

import httpx
import pytest

from tests.studio.chromium import NARROW, WIDE, Tab
from tests.studio.cluster import TOKEN, Studio

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(300)]

READS: Final = """
import shutil, os
from azureml_user.parallel_run import EntryScript

def run(mini_batch):
    for each in mini_batch:
        if str(each).endswith(".png"):
            shutil.copy(each, os.path.join(EntryScript().output_dir, os.path.basename(each)))
        if str(each).endswith("bad.txt"):
            raise ValueError("not this one")
    return mini_batch
"""
SCRIPTED: Final = b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>"
IS_DECODED: Final = "each => each.complete && each.naturalWidth === 4"


def png() -> bytes:
    """A picture of 4 x 4 red dots."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    dots = zlib.compress((b"\0" + b"\xff\0\0" * 4) * 4)
    header = struct.pack(">IIBBBBB", 4, 4, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", dots) + chunk(b"IEND", b"")


@pytest.fixture(scope="module")
def inputs(shown: Studio) -> Path:
    folder = shown.cluster.home / "looked-into"
    folder.mkdir()
    (folder / "a.png").write_bytes(png())
    (folder / "bad.txt").write_text("first line\nsecond line\n" + "more\n" * 10_000)
    (folder / "drawing.png").write_bytes(SCRIPTED)
    return folder


@pytest.fixture(scope="module")
def reads(shown: Studio, inputs: Path) -> str:
    job = shown.cluster.submit(READS, inputs=inputs, name="reads", mini_batch_size=1, error_threshold=-1, run_max_try=3)
    shown.cluster.result(job)
    return job


def test_inputs_of_a_mini_batch_are_seen_as_lines_and_pictures(opened: Tab, reads: str) -> None:
    page = opened.page
    opened.open(f"/jobs/{reads}/mini-batches?id=1")
    page.locator(".inputs pre", has_text="second line").wait_for()
    assert len(page.locator(".inputs pre").inner_text()) < 20_000
    page.get_by_role("button", name=f"Copy: parallelrun job replay {reads} 1").wait_for()
    opened.open(f"/jobs/{reads}/mini-batches?id=0")
    picture = page.get_by_role("img", name="a.png")
    picture.wait_for()
    opened.until(f"(() => {{ const f = {IS_DECODED}; return f(document.querySelector('img.picture')) }})()")
    assert opened.violations() == []


def test_inputs_are_read_as_nothing_that_has_scripts_and_only_from_where_jobs_may(
    shown: Studio, inputs: Path, reads: str
) -> None:
    def get(number: int, mini_batch: int = 2) -> httpx.Response:
        url = f"{shown.url}/v1/jobs/{reads}/mini-batches/{mini_batch}/inputs/{number}"
        return httpx.get(url, headers={"Authorization": f"Bearer {TOKEN}"}, trust_env=False, timeout=60)

    drawing = get(0)
    assert (drawing.content, drawing.headers["Content-Type"]) == (SCRIPTED, "application/octet-stream")
    assert drawing.headers["X-Content-Type-Options"] == "nosniff"
    assert drawing.headers["Content-Disposition"].startswith("attachment")
    assert get(0, 0).headers["Content-Type"] == "image/png"
    assert len(get(0, 1).content) == 16 << 10
    assert get(1).status_code == 404
    assert get(0, 3).status_code == 404
    own = shown.cluster.root / "jobs" / reads / "job.json"
    (inputs / "drawing.png").unlink()
    (inputs / "drawing.png").symlink_to(own)
    assert own.exists()
    assert get(0).status_code == 404
    (inputs / "drawing.png").unlink()
    assert get(0).status_code == 404
    (inputs / "drawing.png").write_bytes(SCRIPTED)


def test_tries_stand_side_by_side_and_mini_batches_are_those_of_one_worker(opened: Tab, reads: str) -> None:
    page = opened.page
    opened.open(f"/jobs/{reads}/mini-batches?id=1")
    tries = page.locator(".tries > li")
    tries.nth(2).wait_for()
    first, second, _ = tries.evaluate_all("all => all.map((each) => each.getBoundingClientRect().toJSON())")
    title = page.get_by_role("heading", name="Mini-batch 1").bounding_box()
    inputs = page.locator("div.inputs").bounding_box()
    assert title is not None
    assert inputs is not None
    assert title["y"] + title["height"] <= inputs["y"]  # what it has is below its head, not beside it
    assert first["y"] == second["y"]
    assert first["x"] < second["x"]
    page.evaluate("scrollTo(0, 0)")  # what is half below the bar at the top counts as too small
    assert opened.violations() == []
    opened.resize(*NARROW)
    assert opened.overflow() <= 0
    opened.resize(*WIDE)


def test_mini_batches_are_filtered_by_worker(opened: Tab, shown: Studio) -> None:
    page = opened.page
    opened.open(f"/jobs/{shown.jobs['good']}/mini-batches")
    page.get_by_label("Worker").select_option("process001")
    page.wait_for_url("**process=process001**")
    workers = "[...document.querySelectorAll('table.mini-batches td:nth-child(9)')].map((each) => each.innerText)"
    is_so = "all.length > 0 && all.every((each) => each.endsWith('process001'))"
    opened.until(f"(() => {{ const all = {workers}; return {is_so}; }})()")


def test_outputs_that_are_pictures_are_shown(opened: Tab, reads: str) -> None:
    page = opened.page
    opened.open(f"/jobs/{reads}/outputs?path=a.png")
    page.get_by_role("img", name="a.png").wait_for()
    opened.until(f"(() => {{ const f = {IS_DECODED}; return f(document.querySelector('img.picture')) }})()")
    assert opened.violations() == []
