"""No path that a job names, and no link that its code leaves, reaches files that are not the job's."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from parallelrun_core.code.entry_script_check import check_entry_script
from parallelrun_core.errors import InvalidInput, UnsafePath
from parallelrun_core.storage.local.listing import LocalListing
from parallelrun_core.storage.path_rule import EVERYWHERE, PathRule, Places, resolve
from parallelrun_core.storage.stores import storage_of
from tests.integration.api.conftest import Site
from tests.integration.api.server import ApiServer
from tests.security import path_target
from tests.security.attacks.paths import ATTACKS, submit
from tests.security.path_target import PathTarget

BY_NAME = {attack.name: attack for attack in ATTACKS}
check_attack = partial(path_target.check_attack, BY_NAME, has_store=True)
HARD_LINK = "a hard link among the outputs"
SYMBOLIC_LINK = "a symbolic link among the outputs"
JOB = "job_0123456789abcdefghij"


@pytest.fixture(scope="module")
def target() -> Iterator[PathTarget]:
    with path_target.running(has_store=True) as target:
        yield target


@pytest.mark.integration
@pytest.mark.parametrize("name", BY_NAME)
def test_files_that_are_not_the_jobs_are_out_of_reach(name: str, target: PathTarget) -> None:
    assert BY_NAME[name].play(target) == ""


@pytest.mark.integration
def test_a_job_reads_the_outputs_of_another_and_writes_where_it_may(target: PathTarget) -> None:
    with target.user() as user:
        _, first = submit(user, target)
        path = str(Path(first["output"]["path"]).parent)
        status, second = submit(user, target, inputs={"data": path}, output=str(target.outputs))

        assert (status, second["state"], second["progress"]["rows"]) == (202, "completed", 1)
        assert Path(second["output"]["path"]).parent == target.outputs
        assert user.download(second["id"], "parallel_run_step.txt") == f"{first['output']['path']}\n".encode()


LINKING = """
import argparse, os
parser = argparse.ArgumentParser()
parser.add_argument("--made")
made = parser.parse_known_args()[0].made
def run(mini_batch):
    os.makedirs(made + "/deep", exist_ok=True)
    with open(made + "/one", "w") as file:
        file.write("its own")
    os.link(made + "/one", made + "/deep/two")
    return ["done"]
"""


@pytest.mark.integration
def test_other_names_that_a_job_gives_to_its_own_outputs_are_served(target: PathTarget) -> None:
    outputs = {"outputs": {"made": {"type": "uri_folder"}}, "program_arguments": "--made ${{outputs.made}}"}
    with target.user() as user:
        _, job = submit(user, target, LINKING, **outputs)
        assert job["state"] == "completed", str(job["failure"])
        for name in ("made/one", "made/deep/two"):
            answer = user.client.get(f"/v1/jobs/{job['id']}/outputs/{name}")
            assert (answer.status_code, answer.text) == (200, "its own")


def places_in(folder: Path) -> Path:
    """Folders `in`, `out` and `elsewhere`, and a root with a job."""
    for name in ("in", "out", "elsewhere", f"root/jobs/{JOB}/outputs", "root/code"):
        (folder / name).mkdir(parents=True)
    (folder / "in" / "file").touch()
    (folder / "elsewhere" / "secret").write_text("secret")
    return folder


@pytest.fixture
def places(tmp_path: Path) -> Path:
    return places_in(tmp_path)


def rule_of(places: Path, job: str = "") -> PathRule:
    roots = [str(places / "in"), str(places / "out")]
    return PathRule(places / "root", Places(roots=roots, closed=[str(places / "in" / "closed")]), job)


@pytest.mark.parametrize(
    "path, reads, writes",
    [
        ("in", True, True),
        ("in/file", True, True),
        ("in/none/x", True, True),
        ("in2", False, False),
        ("in/closed", False, False),
        ("in/closed2", True, True),
        ("in/../elsewhere", False, False),
        ("elsewhere/../in/file", True, True),
        ("root", False, False),
        ("root/any", False, False),
        ("root/blobstore/x", True, True),
        ("root/blobstore2", False, False),
        (f"root/jobs/{JOB}", False, False),
        (f"root/jobs/{JOB}/job.json", False, False),
        (f"root/jobs/{JOB}/outputs", True, False),
        (f"root/jobs/{JOB}/outputs/x", True, False),
        (f"root/jobs/{JOB}/outputs/../job.json", False, False),
        ("root/jobs/else/outputs/x", False, False),
        (f"root/jobs/.{JOB}/outputs/x", False, False),
    ],
)
def test_what_may_be_read_and_written(places: Path, path: str, reads: bool, writes: bool) -> None:
    rule, whole = rule_of(places), f"{places}/{path}"

    assert (rule.refusal(whole) is None, rule.refusal(whole, is_written=True) is None) == (reads, writes)


@pytest.mark.parametrize("path", ["/proc", "/proc/self/environ", "/sys/kernel", "link/environ"])
def test_what_the_kernel_says_of_a_service_is_out_of_reach_everywhere(places: Path, path: str) -> None:
    (places / "link").symlink_to("/proc/self")
    rule = PathRule(places / "root", Places(roots=list(EVERYWHERE)))

    refusals = [rule.refusal(os.path.join(places, path), is_written=is_written) for is_written in (False, True)]

    assert all(refusal is not None and "no file on a disk" in refusal.message for refusal in refusals), refusals


def test_a_job_writes_to_its_own_outputs(places: Path) -> None:
    own = f"{places}/root/jobs/{JOB}/outputs/x"

    assert rule_of(places, JOB).refusal(own, is_written=True) is None
    assert rule_of(places, JOB.replace("0", "1")).refusal(own, is_written=True) is not None


def test_where_jobs_are_users_of_their_own_only_a_job_itself_reads_its_outputs(places: Path) -> None:
    """Its workers couldn't: the job would fail later, and on each node."""
    apart, other = Places(roots=[str(places / "in")], are_jobs_apart=True), JOB.replace("0", "1")
    own = f"{places}/root/jobs/{JOB}/outputs/x"

    assert PathRule(places / "root", apart, JOB).refusal(own) is None
    assert PathRule(places / "root", apart).refusal(f"{places}/in/file") is None
    for job in ("", other):
        refused = PathRule(places / "root", apart, job).refusal(own)
        assert refused is not None
        assert "can't read the outputs in another job's folder" in refused.hint
        assert "give that job an output with a path" in refused.hint


def test_a_step_reads_the_outputs_of_its_own_pipeline_and_of_no_other_job(places: Path) -> None:
    sibling, foreign, own = (JOB.replace("0", digit) for digit in "123")
    apart = Places(roots=[str(places / "in")], are_jobs_apart=True, jobs=[sibling])
    rule = PathRule(places / "root", apart, own)
    outputs = {job: f"{places}/root/jobs/{job}/outputs/x" for job in (own, sibling, foreign)}

    assert [rule.refusal(path) is None for path in outputs.values()] == [True, True, False]
    assert [rule.refusal(path, is_written=True) is None for path in outputs.values()] == [True, False, False]
    assert rule.refusal(f"{places}/root/jobs/{sibling}/logs/x") is not None


@pytest.mark.integration
@pytest.mark.parametrize("are_apart", [True, False])
def test_an_api_is_told_whether_jobs_are_users_of_their_own(are_apart: bool, redis_url: str, tmp_path: Path) -> None:
    site, env = Site.made(tmp_path), {"PARALLELRUN_JOBS_APART": "true"} if are_apart else {}
    with ApiServer(tmp_path / "root", redis_url, env=env) as server, server.client() as api:
        first = api.post("/v1/jobs", json=site.spec()).json()["id"]
        outputs = tmp_path / "root" / "jobs" / first / "outputs"
        outputs.mkdir()
        (outputs / "made.txt").write_text("of the first")
        answer = api.post("/v1/jobs", json=site.spec(inputs={"data": str(outputs)}))

    assert answer.status_code == (422 if are_apart else 202), answer.text
    assert ("jobs are users of their own here" in answer.text) is are_apart


def test_a_refusal_says_what_a_link_leads_to(places: Path) -> None:
    (places / "in" / "link").symlink_to(places / "elsewhere")
    refusal = rule_of(places).refusal(f"{places}/in/link/secret")

    assert refusal is not None
    assert refusal.message == (
        f"'{places}/in/link/secret' is outside of the folders that jobs may use: it leads to "
        f"'{places}/elsewhere/secret'"
    )
    assert refusal.hint == f"allowed_roots: {places}/in:{places}/out"


def test_an_input_that_holds_the_clusters_files_is_refused(places: Path) -> None:
    rule = PathRule(places / "root", Places(roots=["/"]))

    assert rule.refusal(str(places), pattern=()) is not None
    assert rule.refusal("/", pattern=()) is not None
    assert rule.refusal(str(places), pattern=("r*", "*")) is not None
    assert rule.refusal(str(places), pattern=("in*", "*")) is None
    assert rule.refusal(str(places), pattern=("*.csv",)) is None
    assert rule.refusal(str(places / "in"), pattern=()) is None


def test_links_are_followed_as_the_system_follows_them(places: Path) -> None:
    base = places / "in"
    (base / "up").symlink_to("../elsewhere")
    (base / "chain").symlink_to("up/secret")
    (base / "nowhere").symlink_to("../elsewhere/none")
    (base / "loop").symlink_to("loop")

    for name in ("up", "chain", "nowhere", "up/../in/file", "nowhere/deeper"):
        assert resolve(os.fsencode(base / name)) == os.fsencode(os.path.realpath(base / name)), name
    with pytest.raises(OSError, match="symbolic links"):
        resolve(os.fsencode(base / "loop"))


def test_a_path_that_links_make_too_long_is_refused_and_not_taken_for_one_without(places: Path) -> None:
    """What can't be asked about may be a link; `realpath` says that it is none."""
    name, deep = "d" * 200, places / "in"
    for _ in range(25):  # longer than any path may be
        deep = deep / name
    shortcut, folder = places / "in" / "short", places / "in"
    for number in range(5):
        at = folder
        for _ in range(5):
            at = at / name
        os.makedirs(at, exist_ok=True)
        link = places / "in" / f"l{number}"
        link.symlink_to(at)
        folder = link
    shortcut.symlink_to(folder)
    (folder / "out").symlink_to(places / "elsewhere")

    with pytest.raises(OSError, match="name too long"):
        resolve(os.fsencode(f"{shortcut}/out/secret"))


@pytest.mark.parametrize("below", [[], ["link*", "*"], ["**"]], ids=str)
def test_a_link_that_appears_after_the_check_is_not_followed(places: Path, below: list[str]) -> None:
    rule, storage = rule_of(places), storage_of("/")
    assert storage.place_trouble(f"{places}/in", rule) is None
    assert storage.input_trouble(f"{places}/in", rule=rule) is None
    listing = LocalListing(f"{places}/in", below, rule)

    (places / "in" / "link1").symlink_to(places / "elsewhere")

    with pytest.raises(UnsafePath, match=r"it leads to '.*/elsewhere'"):
        list(listing)


@pytest.mark.parametrize("sorted_up_to", [0, 1000])
def test_a_file_that_is_a_link_is_checked_in_folders_of_any_size(places: Path, sorted_up_to: int) -> None:
    (places / "in" / "inside").symlink_to("file")
    (places / "in" / "gone").symlink_to("none")
    (places / "in" / "loop").symlink_to("loop")
    listing = LocalListing(f"{places}/in", (), rule_of(places), sorted_up_to=sorted_up_to, page=2)
    assert sorted(name for _, names in listing for name in names) == [b"file", b"gone", b"inside", b"loop"]

    (places / "in" / "link").symlink_to(places / "elsewhere" / "secret")

    with pytest.raises(UnsafePath, match=r"it leads to '.*/elsewhere/secret'"):
        list(listing)
    assert list(LocalListing(f"{places}/in", ["fi*"], rule_of(places))) == [(os.fsencode(places / "in"), [b"file"])]


def test_a_folder_that_is_replaced_while_it_is_listed_is_the_one_that_was_opened(places: Path) -> None:
    (places / "in" / "sub").mkdir()
    for name in ("a", "b", "c"):
        (places / "in" / "sub" / name).touch()
    pages = iter(LocalListing(f"{places}/in/sub", (), rule_of(places), sorted_up_to=0, page=1))
    names = [*next(pages)[1]]
    (places / "in" / "sub").rename(places / "in" / "moved")
    (places / "in" / "sub").symlink_to(places / "elsewhere")

    names += [name for _, more in pages for name in more]

    assert sorted(names) == [b"a", b"b", b"c"]


def test_what_is_opened_is_checked_when_it_is_open(places: Path) -> None:
    rule, path = rule_of(places), places / "in" / "file"
    with storage_of("/").open(str(path), rule) as file:
        assert file.read() == b""
    path.unlink()
    path.symlink_to(places / "elsewhere" / "secret")

    with pytest.raises(UnsafePath, match="outside of the folders"):
        storage_of("/").open(str(path), rule)


def test_an_output_is_not_written_through_a_link_that_has_appeared(places: Path) -> None:
    rule, target = rule_of(places), places / "out" / "rows" / "x.txt"
    (places / "out" / "rows").symlink_to(places / "elsewhere")

    with pytest.raises(UnsafePath, match="outside of the folders"):
        storage_of("/").create(str(target), JOB, rule)
    assert [path.name for path in (places / "elsewhere").iterdir()] == ["secret"]


def test_an_entry_script_that_is_a_link_shows_nothing_of_what_it_leads_to(places: Path) -> None:
    (places / "elsewhere" / "secret").write_text("root:x:0:0:root:/root:/bin/sh\n")
    (places / "in" / "entry.py").symlink_to(places / "elsewhere" / "secret")

    with pytest.raises(InvalidInput, match="is a link to outside the code folder") as refused:
        check_entry_script(places / "in", "entry.py")
    assert "root:x" not in str(refused.value)
