"""What a job names is opened once: whoever swaps it for a link while it is copied has nothing of others copied."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import pytest

from parallelrun_agent.users.worker_user import WorkerUser
from parallelrun_agent.workers.models import model_folder
from parallelrun_core.code.context import snapshot_context
from parallelrun_core.code.snapshots import snapshot_folder
from parallelrun_core.errors import InvalidInput
from parallelrun_core.intake.reading import read_job
from parallelrun_core.mltable.plan import plan_inputs
from parallelrun_core.storage.interface import Version
from parallelrun_core.storage.local.listing import LocalListing
from parallelrun_core.storage.path_rule import PathRule, Places
from parallelrun_core.storage.stores import storage_of
from tests.security import path_target
from tests.security.attacks.races import ATTACKS

SWAPS = 3000
ATTEMPTS = 500  # on a busy machine the thread that swaps may do all of its swaps within few of them
SECRET = "of another user"
_FOLDER_OF = {"code": "", "file": "entry.py", "subfolder": "deep/deeper", "ignore file": ".amlignore"}


@contextmanager
def swapped(path: Path, target: Path) -> Iterator[Callable[[], int]]:
    """Let a path be now what it is, and now a link to something else.

    What is yielded is asked before each attempt to read or write the path: it says how often it was swapped, and 0
    until there were enough attempts.
    """
    aside, count, attempts, is_over = path.with_name(f"{path.name}-aside"), 0, 0, threading.Event()

    def swap() -> None:
        nonlocal count
        while not is_over.is_set():
            with suppress(OSError):
                path.rename(aside)
            try:
                path.symlink_to(target)
                path.unlink()
            except FileExistsError:  # an output's folder was made anew
                shutil.rmtree(path, ignore_errors=True)
            with suppress(OSError):
                aside.rename(path)
            count += 1
            while not path.exists() and aside.exists():
                shutil.rmtree(path, ignore_errors=True)
                with suppress(OSError):
                    aside.rename(path)

    def count_of_swaps() -> int:
        nonlocal attempts
        attempts += 1
        if not thread.is_alive():
            raise RuntimeError(f"nothing swaps {path} any more")  # no assertion, which a twin would take for a find
        return count if attempts > ATTEMPTS else 0

    thread = threading.Thread(target=swap)
    # Each call of the file system gives the interpreter away, and would wait this long for it: at each of seven calls.
    interval = sys.getswitchinterval()
    sys.setswitchinterval(0.0001)
    thread.start()
    try:
        yield count_of_swaps
    finally:
        is_over.set()
        thread.join()
        sys.setswitchinterval(interval)


@pytest.fixture
def places(tmp_path: Path) -> Path:
    return places_in(tmp_path)


def places_in(folder: Path) -> Path:
    """A folder of a user's among the allowed ones, and one of somebody else that looks the same."""
    for top, text in (("in/mine", "my own"), ("elsewhere/mine", SECRET)):
        (folder / top / "deep" / "deeper").mkdir(parents=True)
        for name in ("entry.py", "Dockerfile", "deep/deeper/file"):
            (folder / top / name).write_text(f"# {text}\n")
        (folder / top / ".amlignore").write_text("entry.py\n" if text == SECRET else "nothing\n")
    (folder / "root").mkdir()
    return folder


def rule_of(places: Path) -> PathRule:
    return PathRule(places / "root", Places(roots=[str(places / "in")]))


def leaks_in(texts: Iterable[str]) -> list[str]:
    """The lines that hold what is somebody else's. pytest compares whole texts of thousands of attempts for minutes."""
    return [line for text in texts for line in text.splitlines() if SECRET in line]


def check_copies(places: Path, below: str, take: Callable[[Path, PathRule], object], swaps: int = SWAPS) -> None:
    """Copy again and again while a part is swapped; nothing of the other user's may be in any copy, or in an error."""
    mine, errors = places / "in" / "mine", set()
    with swapped(mine / below if below else mine, places / "elsewhere" / "mine" / below) as count:
        while count() < swaps:
            try:
                take(mine, rule_of(places))
            except (InvalidInput, OSError) as error:
                errors.add(str(error))
    copies = {path.read_text() for path in (places / "store").rglob("*") if path.is_file()}
    assert leaks_in(copies | errors) == []


@pytest.mark.parametrize("part", _FOLDER_OF)
def test_code_that_becomes_a_link_while_it_is_copied(places: Path, part: str) -> None:
    check_copies(places, _FOLDER_OF[part], lambda mine, rule: snapshot_folder(mine, places / "store", rule=rule))
    if part == "ignore file":  # that of somebody else would leave it out
        assert all((each / "entry.py").exists() for each in (places / "store").iterdir() if each.is_dir())


@pytest.mark.parametrize("part", ["", "Dockerfile", "deep/deeper"])
def test_what_an_image_is_built_of_that_becomes_a_link_while_it_is_copied(places: Path, part: str) -> None:
    check_copies(places, part, lambda mine, rule: snapshot_context(mine, "Dockerfile", places / "store", rule=rule))


@pytest.mark.parametrize("below", ["", "entry.py", "deep/deeper/file"])
def test_an_input_that_becomes_a_link_while_it_is_opened(places: Path, below: str) -> None:
    mine, name = places / "in" / "mine", below or "entry.py"
    with swapped(mine / below if below else mine, places / "elsewhere" / "mine" / below) as count:
        while count() < SWAPS:
            try:
                with storage_of("/").open(str(mine / name), rule_of(places)) as file:
                    assert SECRET.encode() not in file.read()
            except (InvalidInput, OSError):
                continue


@pytest.mark.parametrize("below, path", [("", ""), ("MLTable", ""), ("MLTable", "MLTable"), ("table", "table")])
def test_a_table_file_that_becomes_a_link_while_it_is_read(places: Path, below: str, path: str) -> None:
    for top, key in (("in/mine", "traits"), ("elsewhere/mine", SECRET)):
        for name in ("MLTable", "table"):
            (places / top / name).write_text(
                f"{key}: {{}}\npaths: [file: entry.py]\ntransformations: [read_delimited]\n"
            )
    mine, errors, tables = places / "in" / "mine", set(), 0
    inputs = {"rows": {"path": str(mine / path if path else mine), "type": "mltable"}}
    spec = read_job({"entry_script": "e.py", "inputs": inputs}).job
    with swapped(mine / below if below else mine, places / "elsewhere" / "mine" / below) as count:
        while count() < SWAPS:
            try:
                (plan,) = plan_inputs(spec, rule_of(places))
                tables += [source.path for source in plan.sources] == [str(mine / "entry.py")]
            except InvalidInput as error:
                errors |= {str(error), str(error.problems)}
    assert tables
    assert leaks_in(errors) == []


@pytest.mark.skipif(os.getuid() != 0, reason="only root can act as another user")
@pytest.mark.parametrize("below", ["", "weights"])
def test_a_model_that_becomes_a_link_while_its_folder_is_made(below: str) -> None:
    """Inputs that aren't cut are opened by nobody but the script, as the user of its job, or copied as that user."""
    user = WorkerUser(23_456)
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:  # that user can't enter pytest's own
        places = Path(folder)
        places.chmod(0o755)
        for top, text in (("mine", "my own"), ("elsewhere", SECRET)):
            (places / top).mkdir()
            for name in ("MLmodel", "weights"):
                (places / top / name).write_text(text)
        (places / "elsewhere").chmod(0o700)
        (places / "elsewhere" / "weights").chmod(0o600)
        (places / "locals").mkdir()
        user.share(places / "locals", 0o770)
        model = {"path": str(places / "mine"), "model": "mlflow_model"}
        document = {"entry_script": "e.py", "input_data": ["rows"], "inputs": {"rows": "/data", "model": model}}
        spec = read_job(document).job
        local, copies = places / "locals" / "one", set()
        mine = places / "mine" / below if below else places / "mine"
        with swapped(mine, places / "elsewhere" / below) as count:
            while count() < SWAPS:
                user.make(local)
                with suppress(OSError, shutil.Error):
                    model_folder(spec, {}, local, user)
                copies |= {path.read_text() for path in local.rglob("*") if path.is_file() and not path.is_symlink()}
                user.remove(local)
        assert "my own" in copies
        assert leaks_in(copies) == []


def test_an_input_that_becomes_a_link_while_it_is_listed(places: Path) -> None:
    (places / "elsewhere" / "mine" / "stolen").touch()
    with swapped(places / "in" / "mine", places / "elsewhere" / "mine") as count:
        while count() < SWAPS:
            try:
                names = [name for _, page in LocalListing(f"{places}/in/mine", (), rule_of(places)) for name in page]
            except (InvalidInput, OSError):
                continue
            assert b"stolen" not in names


@pytest.mark.parametrize("below", ["", "deep{number}/"])
def test_an_output_that_becomes_a_link_while_it_is_created(places: Path, below: str) -> None:
    (places / "in" / "mine" / "out").mkdir()
    (places / "elsewhere" / "mine" / "out").mkdir()
    with swapped(places / "in" / "mine" / "out", places / "elsewhere" / "mine" / "out") as count:
        number = 0
        while count() < SWAPS:
            number += 1
            path = f"{places}/in/mine/out/{below.format(number=number)}rows{number}"
            try:
                with storage_of("/").create(path, "job", rule_of(places)) as file:
                    file.write(memoryview(b"rows"))
                    file.publish(())
            except (InvalidInput, OSError):
                continue
    assert list((places / "elsewhere" / "mine" / "out").iterdir()) == []


def test_a_tables_log_that_becomes_a_link_while_it_is_copied(places: Path) -> None:
    mine = places / "in" / "mine"
    with swapped(mine / "deep", places / "elsewhere" / "mine" / "deep") as count, tempfile.TemporaryFile() as copy:
        while count() < SWAPS:
            copy.seek(0)
            try:
                path = str(mine / "deep" / "deeper" / "file")
                storage_of("/").copy(path, Version(0, 0.0), copy.fileno(), rule=rule_of(places))
            except (InvalidInput, OSError):
                continue
            copy.seek(0)
            assert SECRET.encode() not in copy.read()


BY_NAME = {attack.name: attack for attack in ATTACKS}
check_attack = partial(path_target.check_attack, BY_NAME, nodes=0)


@pytest.mark.integration
@pytest.mark.parametrize("name", BY_NAME)
def test_races_of_a_submitter(name: str) -> None:
    check_attack(name)
