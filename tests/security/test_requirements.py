"""No requirement of a job is anything else to an installer than the name of a package."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from parallelrun_core.code.dockerfile_check import check_dockerfile
from parallelrun_core.errors import InvalidInput
from tests.integration.api.conftest import Site
from tests.integration.api.server import ApiServer
from tests.security import path_target
from tests.security.attacks import dockerfiles, requirements
from tests.security.attacks.dockerfiles import FETCHING, OF_THE_MACHINE, WITH_MOUNTS
from tests.security.path_target import PathTarget

BY_NAME = {attack.name: attack for attack in [*requirements.ATTACKS, *dockerfiles.ATTACKS]}
check_attack = partial(path_target.check_attack, BY_NAME)
COMMIT = "0123456789" * 4


@pytest.fixture(scope="module")
def target() -> Iterator[PathTarget]:
    with path_target.running() as target:
        yield target


@pytest.mark.integration
@pytest.mark.parametrize("name", BY_NAME)
def test_what_is_installed_or_built_of_is_what_was_checked(name: str, target: PathTarget) -> None:
    assert BY_NAME[name].play(target) == ""


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


@pytest.mark.parametrize("text", FETCHING)
def test_a_dockerfile_that_has_the_engine_fetch_something_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="the Engine would fetch"):
        check_dockerfile(text.encode(), "Dockerfile")
    check_dockerfile(b"FROM x\nRUN <<END\nadd words\nEND\nADD x /x\nCOPY <<E /y\nhttps://h\nE\n", "Dockerfile")


def test_a_dockerfile_of_ever_so_many_lines_is_refused() -> None:
    with pytest.raises(InvalidInput, match="more than 20,000 lines"):
        check_dockerfile(b"FROM x\nRUN <<E <<F\n" + b"ADD \\\n" * 170_000, "Dockerfile")


def test_a_dockerfile_may_add_files_and_fetch_in_its_own_steps() -> None:
    text = "FROM x\nARG U=1\nADD data.tar.gz /data/\nCOPY x /x\nRUN curl https://h/x \\\n && add $U\n"
    check_dockerfile(text.encode(), "Dockerfile")


@pytest.mark.parametrize("texts", [OF_THE_MACHINE, WITH_MOUNTS])
def test_a_dockerfile_of_what_only_the_engines_machine_has_is_refused(texts: tuple[str, ...]) -> None:
    for text in texts:
        with pytest.raises(InvalidInput, match="/environment/build/dockerfile_path: Dockerfile: "):
            check_dockerfile(text.encode(), "Dockerfile")


@pytest.mark.parametrize(
    "text, images",
    [
        ("FROM python:3.11\nRUN -x\n", {"python:3.11"}),
        ("ARG T=3.11\nFROM python:${T} AS b\nFROM B\nCOPY --from=b /x /x\nCOPY --from=0 /x /y", {"python:3.11"}),
        ("FROM --platform=$BUILDPLATFORM q/b@sha256:00ff as Q\nCOPY --chown=$A:$B --from=q x y", {"q/b@sha256:00ff"}),
        ("ARG A=\"r.example.org/x\" B\nARG C='q'\nFROM $A:$C\nARG C=z\nFROM $C", {"r.example.org/x:q", "q"}),
        ("# syntax=docker/dockerfile:1\nFROM scratch\nRUN pip install 'x<2' 'y<3' \\\n  && echo $x", set()),
        ('FROM x\nRUN ["x", "--mount"]\nRUN echo --mount\nONBUILD COPY --from=z a b', {"x", "z"}),
    ],
)
def test_the_images_that_a_dockerfile_names(text: str, images: set[str]) -> None:
    assert check_dockerfile(text.encode(), "Dockerfile") == images
