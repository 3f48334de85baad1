"""The values of a job's secrets are on its nodes only: not in its folder, on Redis, in an answer, or in a log."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from parallelrun_core.errors import InvalidInput
from parallelrun_core.spec import JobSpec
from parallelrun_core.wire.masking import Mask
from parallelrun_core.wire.states import JobState
from tests.cluster import Cluster
from tests.security.attacks.words import ATTACKS, JOINED_LOGS, answers, by_all_doors
from tests.security.cluster_target import ClusterTarget

FRAGMENT = "kX7q"
CANARY = f"{FRAGMENT}-canary 'of \"the\\job/%é"
IN_FILE = f"{FRAGMENT}-first line of a key\n{FRAGMENT}-second line of it"
JOB = {
    "secrets": {"API_KEY": {"env": "BILLING"}, "PEM": {"file": "keys/pem"}},
    "program_arguments": "--key '${{secrets.API_KEY}}' --plain x${{ Secrets.pem }}x",
    "environment_variables": {"URL": "pg://${{secrets.API_KEY}}@db ${{inputs.data}}"},
}
SCRIPT = r"""
import json, os, sys
from urllib.parse import quote

def fail():
    key, pem = os.environ["API_KEY"], os.environ["PEM"]
    assert sys.argv[-6:-2] == ["--key", key, "--plain", f"x{pem}x"], sys.argv
    assert os.environ["URL"] == f"pg://{key}@db " + "${{inputs.data}}"
    texts = key, repr(pem), json.dumps(key), quote(key), quote(key, safe=""), pem.splitlines()[1], os.environ["URL"]
    raise ValueError("x" * 1990 + key, sys.argv, *texts)

if "import" == WHERE:
    fail()

def init():
    if "init" == WHERE:
        fail()

def run(mini_batch):
    if "run" == WHERE:
        fail()
    return ["row"]

def shutdown():
    if "shutdown" == WHERE:
        fail()
"""


def cluster_with_secrets(tmp_path: Path, without: str = "") -> Cluster:
    """One whose node has the secrets of `JOB`."""
    folder = tmp_path / "secrets"
    (folder / "keys").mkdir(parents=True, mode=0o700)
    folder.chmod(0o700)
    (folder / "keys" / "pem").write_text(IN_FILE + "\n")
    cluster = Cluster(api=True, slots=1, token="none", without=without, agent_flags=("--secrets-dir", str(folder)))
    cluster.environments |= {name: {"PARALLELRUN_SECRET_BILLING": CANARY} for name in cluster.nodes}
    return cluster


@pytest.mark.integration
def test_a_secret_that_its_script_raises_is_masked_wherever_that_is_told(tmp_path: Path) -> None:
    check_secrets(tmp_path)


def check_secrets(
    tmp_path: Path, without: str = "", places: tuple[str, ...] = ("import", "init", "run", "shutdown")
) -> None:
    """Raise secrets in all places, and look for them in all places."""
    with cluster_with_secrets(tmp_path, without) as cluster:
        target = ClusterTarget(cluster)
        for where in places:
            told = [*answers(target, SCRIPT.replace("WHERE", repr(where)), **JOB), *by_all_doors(target)]
            assert {f"the artifact {log}" for log in JOINED_LOGS} <= {name for name, _ in told}
            assert any("ValueError" in text and "***" in text for _, text in told) or without, told
            assert [name for name, text in told if FRAGMENT in text] == []
            assert [path for path in files_below(cluster.folder(target.job_id).path) if has_secret(path)] == []
        assert [path for path in files_below(cluster.redis_server.folder) if has_secret(path)] == []
        assert [name for name in (*cluster.nodes, "master", "api") if FRAGMENT in cluster.log(name)] == []


def files_below(folder: Path) -> Iterator[Path]:
    """All files: those of Redis have every command that changed something."""
    return (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())


def has_secret(path: Path) -> bool:
    return FRAGMENT.encode() in path.read_bytes()


@pytest.mark.integration
def test_what_attackers_read_of_a_failed_job_has_none_of_its_variables() -> None:
    with Cluster(api=True, token="none") as cluster:
        target = ClusterTarget(cluster)
        assert ATTACKS[1].play(target) == ""
        record = cluster.folder(target.job_id).path / "job.json"
        assert stat.S_IMODE(record.stat().st_mode) == 0o600


SEEN_BY_OTHERS = """
import os
def run(mini_batch):
    with open("/proc/self/cmdline") as file:
        return [oct(os.stat(".worker.json").st_mode & 0o777), str(os.environ["API_KEY"] in file.read()), os.getcwd()]
"""


@pytest.mark.integration
def test_a_secret_is_not_on_a_command_line_and_in_no_file_that_others_can_read(tmp_path: Path) -> None:
    with cluster_with_secrets(tmp_path) as cluster:
        rows = ClusterTarget(cluster).rows_of(SEEN_BY_OTHERS, **JOB)
        assert rows[:2] == ["0o600", "False"]


@pytest.mark.integration
def test_a_secret_that_is_not_on_the_node_fails_the_job_with_its_name(tmp_path: Path) -> None:
    with cluster_with_secrets(tmp_path) as cluster:
        job = {"inputs": cluster.files(1), "secrets": {"API_KEY": {"env": "OTHER"}}}
        result = cluster.result(cluster.submit(SCRIPT.replace("WHERE", "''"), **job))  # type: ignore[arg-type]
        assert result.state is JobState.FAILED
        assert result.failure is not None
        what = "into the environment of its agent, as PARALLELRUN_SECRET_OTHER"
        assert f"Secret API_KEY isn't on node node000: put it {what}." in result.failure.first_cause


@pytest.mark.parametrize(
    "fields, reason",
    [
        ({"secrets": {"KEY": "the value itself"}}, "must be a reference"),
        ({"secrets": {"KEY": {"env": "A", "file": "b"}}}, "either"),
        ({"secrets": {"KEY": {}}}, "either"),
        ({"secrets": {"KEY": {"file": "../token"}}}, "below"),
        ({"secrets": {"KEY": {"file": "/etc/shadow"}}}, "below"),
        ({"secrets": {"KEY": {"env": "A B"}}}, "letters"),
        ({"secrets": {"A=B": {"env": "A"}}}, "not a valid name"),
        ({"secrets": {"KEY": {"env": "A"}, "key": {"env": "A"}}}, "letter case"),
        ({"secrets": {"KEY": {"env": "A"}}, "environment_variables": {"KEY": "1"}}, "also one of"),
        ({"program_arguments": "--key ${{secrets.KEY}}"}, "not one of the secrets"),
        ({"environment_variables": {"URL": "${{secrets.KEY}}"}}, "not one of the secrets"),
    ],
    ids=str,
)
def test_a_reference_that_cannot_be_resolved_is_refused_when_it_is_submitted(
    fields: dict[str, object], reason: str
) -> None:
    with pytest.raises(InvalidInput, match=reason):
        JobSpec.parse({"entry_script": "entry.py", "inputs": "/data", **fields})


def test_a_mask_knows_how_others_write_a_value() -> None:
    mask = Mask({"environment_variables": {"SHORT": "abc", "KEY": "two words/é'\n\x1b1"}})
    for text in (
        "two words/é'\n\x1b1",
        "two words/é'\\n\\x1b1",
        "two words/é\\'\\n\\x1b1",
        "two words/\\u00e9'\\n\\u001b1",
        "two words/é\\\\'\\\\n\\\\x1b1",
        "two%20words%2F%C3%A9%27%0A%1B1",
        "two+words%2F%C3%A9%27%0A%1B1",
        "two%20words/%C3%A9%27%0A%1B1",
    ):
        assert mask.text(f"<{text}>") == "<***>"
    assert mask.text("abc") == "abc"
