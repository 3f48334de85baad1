"""What is wrong is refused at the door: where, why, what to do; and nothing is left of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.acceptance.embedded import Embedded, Said, parallelrun
from tests.acceptance.http_user import HttpUser, zip_of

pytestmark = pytest.mark.acceptance

FINE = "def run(mini_batch):\n    return mini_batch\n"
UNWRITABLE = "/dev/pts/parallelrun"
"""Not even root can make this folder."""
RAISES = "def init():\n    raise ValueError('the model is gone')\n\n\n" + FINE


@dataclass(frozen=True, kw_only=True)
class Wrong:
    """One mistake in a job that is fine otherwise."""

    pointer: str
    says: str
    """A pattern that the complaint or its hint matches."""
    changes: dict[str, Any] = field(default_factory=dict)
    script: str = FINE


MISTAKES = {
    "missing folder": Wrong(pointer="/inputs/data/path", says="nowhere", changes={"inputs": {"data": "nowhere"}}),
    "empty folder": Wrong(pointer="/inputs/data/path", says="has no files", changes={"inputs": {"data": "empty"}}),
    "no entry script": Wrong(
        pointer="/entry_script", says="no file 'mian.py'.*entry.py", changes={"entry_script": "mian.py"}
    ),
    "syntax error": Wrong(
        pointer="/entry_script", says="line 2", script="def run(mini_batch):\n    retrun mini_batch\n"
    ),
    "no run()": Wrong(
        pointer="/entry_script", says=r"does not define run\(\).*def run\(mini_batch\)", script="x = 1\n"
    ),
    "unknown field": Wrong(
        pointer="/mini_batch_sise", says="did you mean 'mini_batch_size'", changes={"mini_batch_sise": 5}
    ),
    "wrong type": Wrong(pointer="/mini_batch_size", says="whole number.*'many'", changes={"mini_batch_size": "many"}),
    "output below a file": Wrong(
        pointer="/output", says="entry.py.* is not a folder", changes={"output": "src/entry.py/out"}
    ),
    "output not writable": Wrong(pointer="/output", says="can't be written", changes={"output": UNWRITABLE}),
}

each_mistake = pytest.mark.parametrize("wrong", MISTAKES.values(), ids=MISTAKES)
each_but_of_output = pytest.mark.parametrize(
    "wrong", [pytest.param(wrong, id=name) for name, wrong in MISTAKES.items() if wrong.pointer != "/output"]
)


@dataclass(frozen=True)
class Site:
    """A user's folder."""

    folder: Path

    def write(self, wrong: Wrong) -> Path:
        """Write everything down; returns the job file."""
        for name in ("src", "data", "empty"):
            (self.folder / name).mkdir()
        (self.folder / "src" / "entry.py").write_text(wrong.script)
        (self.folder / "data" / "one.txt").touch()
        file = self.folder / "job.yml"
        file.write_text(yaml.safe_dump({**self.spec(wrong), "code": "src"}))
        return file

    def spec(self, wrong: Wrong) -> dict[str, Any]:
        return {"entry_script": "entry.py", "inputs": {"data": "data"}, **wrong.changes}

    def absolute(self, wrong: Wrong) -> dict[str, Any]:
        """The spec as it is sent to a server."""
        spec = self.spec(wrong)
        spec["inputs"] = {name: str(self.folder / path) for name, path in spec["inputs"].items()}
        if "output" in spec:
            spec["output"] = str(self.folder / spec["output"])
        return spec

    def entries(self) -> set[Path]:
        return set(self.folder.rglob("*"))


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


@pytest.fixture
def user(embedded: Embedded) -> Iterator[HttpUser]:
    with embedded.user() as user:
        yield user


@each_mistake
def test_over_http(embedded: Embedded, user: HttpUser, site: Site, wrong: Wrong) -> None:
    site.write(wrong)
    before = embedded.traces(), site.entries()

    answer = user.post(site.absolute(wrong), zip_of({"entry.py": wrong.script}))

    assert answer.status_code == 422
    assert answer.headers["Content-Type"] == "application/problem+json"
    [error] = answer.json()["errors"]
    assert error["pointer"] == wrong.pointer
    assert re.search(wrong.says, f"{error['message']} {error.get('hint', '')}")
    assert (embedded.traces(), site.entries()) == before


@each_mistake
def test_by_command_line_to_a_server(embedded: Embedded, site: Site, wrong: Wrong) -> None:
    file = site.write(wrong)
    before = embedded.traces(), site.entries()

    said = embedded.command("job", "create", "-f", file)

    check_complaint(said, wrong)
    assert said.out == ""
    assert (embedded.traces(), site.entries()) == before


@each_but_of_output
def test_by_command_line_on_this_machine(site: Site, wrong: Wrong) -> None:
    file = site.write(wrong)
    before = site.entries()

    said = parallelrun("run", file, "--output", site.folder / "out", cwd=site.folder)

    check_complaint(said, wrong)
    assert said.out == ""
    assert site.entries() == before


def check_complaint(said: Said, wrong: Wrong) -> None:
    """It says where, why and what to do, in a few lines."""
    lines = said.err.splitlines()
    assert said.code == 2, said
    assert any(line.startswith("error: ") for line in lines)
    # What is told of a short form has no parts; what only a server finds has no line of a file.
    field = re.escape(wrong.pointer.removesuffix("/path"))
    assert any(re.match(rf"  (\S+job\.yml:\d+: )?{field}(/path)?: ", line) for line in lines), said.err
    assert re.search(wrong.says, said.err, re.DOTALL), said.err
    assert "Traceback" not in said.err


def test_every_mistake_is_named_at_once(embedded: Embedded, site: Site) -> None:
    several = Wrong(pointer="", says="", changes={"mini_batch_sise": 5, "run_max_try": 0, "error_threshold": "none"})

    said = embedded.command("job", "create", "-f", site.write(several))

    assert said.code == 2
    for pointer in several.changes:
        assert re.search(rf"job\.yml:\d+: /{pointer}: ", said.err)


def test_a_zip_that_leaves_its_folder(embedded: Embedded, user: HttpUser, site: Site) -> None:
    fine = Wrong(pointer="", says="")
    site.write(fine)
    before = embedded.traces(), site.entries()

    for name in ("../escaped.py", "/tmp/escaped.py", "a/../../escaped.py", "..\\escaped.py"):
        answer = user.post(site.absolute(fine), zip_of({"entry.py": FINE, name: FINE}))
        assert (answer.status_code, answer.json()["code"]) == (422, "unsafe_path"), name
        assert "escaped.py" in answer.json()["detail"]

    assert (embedded.traces(), site.entries()) == before
    assert list(embedded.home.rglob("*escaped*")) == []


@pytest.mark.parametrize("folder", ["src/entry.py/out", UNWRITABLE])
def test_an_output_folder_that_can_not_be_made(site: Site, folder: str) -> None:
    file = site.write(Wrong(pointer="", says=""))
    before = site.entries()

    said = parallelrun("run", file, "--output", folder, cwd=site.folder)

    assert said.code in (1, 2)
    assert said.out == ""
    assert said.err.startswith("error: ")
    assert folder.removesuffix("/out") in said.err
    assert "Traceback" not in said.err
    assert site.entries() == before


def test_an_init_that_raises_fails_fast_with_the_users_own_traceback(
    embedded: Embedded, user: HttpUser, site: Site
) -> None:
    raising = Wrong(pointer="", says="", script=RAISES)
    file = site.write(raising)

    def by_http() -> str:
        job = user.ended(user.submit(site.absolute(raising), zip_of({"entry.py": RAISES})), timeout_s=60)
        assert (job["state"], job["failure"]["code"], job["output"]) == ("failed", "INIT_FAILED", None)
        return f"{job['failure']['first_cause']}\n{job['failure']['traceback']}"

    def to_a_server() -> str:
        said = embedded.command("job", "create", "-f", file, "--stream")
        assert said.code == 3, said
        return said.err

    def on_this_machine() -> str:
        said = parallelrun("run", file, "--output", site.folder / "out", cwd=site.folder)
        assert said.code == 3, said
        assert not (site.folder / "out" / "parallel_run_step.txt").exists()
        return said.err

    doors: list[Callable[[], str]] = [by_http, to_a_server, on_this_machine]
    for door in doors:
        said = door()
        assert "ValueError: the model is gone" in said
        assert re.search(r'entry\.py", line 2, in init', said), said
        assert "parallelrun_worker" not in said
