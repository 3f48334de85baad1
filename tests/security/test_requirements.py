"""No requirement of a job is anything else to an installer than the name of a package."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from parallelrun_core.code.dockerfile_check import check_dockerfile
from parallelrun_core.errors import InvalidInput
from tests.cluster import Cluster
from tests.integration.api.conftest import Site
from tests.integration.api.server import ApiServer
from tests.security.attacks.requirements import ATTACKS
from tests.security.path_target import PathTarget

BY_NAME = {attack.name: attack for attack in ATTACKS}
COMMIT = "0123456789" * 4


@pytest.fixture(scope="module")
def target() -> Iterator[PathTarget]:
    cluster = Cluster(api=True)
    made = PathTarget(cluster)
    with cluster:
        yield made


@pytest.mark.integration
@pytest.mark.parametrize("name", BY_NAME)
def test_requirements_are_names_of_packages(name: str, target: PathTarget) -> None:
    assert BY_NAME[name].play(target) == ""


def check_attack(name: str, without: str) -> None:
    """Play an attack against a cluster without a mechanism."""
    cluster = Cluster(api=True, without=without)
    made = PathTarget(cluster)
    with cluster:
        assert BY_NAME[name].play(made) == ""


@pytest.mark.integration
def test_requirements_from_hosts_that_no_operator_has_listed_are_refused(redis_url: str, tmp_path: Path) -> None:
    site, env = Site.made(tmp_path), {"PARALLELRUN_PACKAGE_HOSTS": "git.example"}
    with ApiServer(tmp_path / "root", redis_url, env=env) as server, server.client() as api:
        answers = [
            api.post("/v1/jobs", json=site.spec(environment=environment))
            for environment in (
                {"pip": [f"x @ git+https://git.example/x@{COMMIT}"]},
                {"pip": [f"x @ git+https://elsewhere.example/x@{COMMIT}"]},
                {"extra_index_urls": ["https://elsewhere.example/simple"], "pip": ["six"]},
                {"conda_file": {"dependencies": [{"pip": ["-f https://elsewhere.example/x", "six"]}]}},
            )
        ]

    assert [answer.status_code for answer in answers] == [202, 422, 422, 422]
    for answer, field in zip(answers[1:], ("pip", "extra_index_urls", "find_links"), strict=True):
        assert answer.json()["errors"][0]["pointer"] == f"/environment/{field}"
        assert "PARALLELRUN_PACKAGE_HOSTS" in answer.text


BAD_DOCKERFILES = [
    "FROM a\nADD https://h/x /x",
    "FROM a\nadd --chown=1:1 http://169.254.169.254/x /x",
    "FROM a\nONBUILD ADD https://h/x /x",
    "FROM a\nAD\\\nD https://h/x /x",
    "FROM a\nADD \\\n# why\n\n https://h/x /x",
    "# escape=`\nFROM a\nADD `\n https://h/x /x",
    'FROM a\nADD ["https:\\u002f\\u002fh/x", "/x"]',
    'FROM a\nADD "https:"//h/x /x',
    "FROM a\nARG U\nADD ${U} /x",
    "FROM a\nADD git@h:x/y.git /x",
    "\ufeffADD https://h/x /x",
    "FROM a\r\nADD https://h/x /x\r\n",
    "FROM a\nRUN <<'E\\'\nE\\\nAD\\\nD https://h/x /x",
    "FROM a\nRUN <<'#'\nx \\\n#\nAD\\\nD https://h/x /x",
    "FROM a\nRUN <<''\nx \\\n\nAD\\\nD ht\\\ntps:\\\n//h/x /x",
    "FROM a\nRUN <<'#'\nx \\\n#\nONBUILD\\\n  AD\\\nD git\\\n@h:x /x",
]


@pytest.mark.parametrize("text", BAD_DOCKERFILES)
def test_a_dockerfile_that_has_the_engine_fetch_something_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="the Engine would fetch"):
        check_dockerfile(text.encode(), "Dockerfile")
    check_dockerfile(b"FROM a\nRUN <<END\nadd words\nEND\nADD x /x\nCOPY <<E /y\nhttps://h\nE\n", "Dockerfile")


def test_a_dockerfile_of_ever_so_many_lines_is_refused() -> None:
    with pytest.raises(InvalidInput, match="more than 20,000 lines"):
        check_dockerfile(b"FROM a\nRUN <<E <<F\n" + b"ADD \\\n" * 170_000, "Dockerfile")


def test_a_dockerfile_may_add_files_and_fetch_in_its_own_steps() -> None:
    text = "FROM a\nARG U=1\nADD data.tar.gz /data/\nCOPY x /x\nRUN curl https://h/x \\\n && add $U\n"
    check_dockerfile(text.encode(), "Dockerfile")
