"""Which environment variables the programs get that our services start."""

from __future__ import annotations

from pathlib import Path

import pytest

from parallelrun_agent.environments.build import BuildFailed, BuildRequest, _build, _files_with_credentials
from parallelrun_agent.environments.recipe import Recipe
from parallelrun_core.service import children
from parallelrun_core.service.children import Child, variables_for, with_credentials, without_installers_secrets
from parallelrun_core.spec.requirements import parse_requirement
from tests.twins.sabotage import expect_failure, replaced

NEEDED = {
    "PATH": "/bin", "HOME": "/h", "https_proxy": "http://p", "UV_DEFAULT_INDEX": "http://i", "PIP_CERT": "/c",
    "SSL_CERT_FILE": "/c", "LC_ALL": "C.UTF-8", "UV_CACHE_DIR": "/cache/uv", "UV_INDEX": "inner.one=https://i/simple",
    "UV_INDEX_INNER_ONE_PASSWORD": "p", "UV_INDEX_INNER_ONE_USERNAME": "u",
}  # fmt: skip
FAKE_UV = """#!/bin/sh
echo "$@" >>"$0.calls"
if [ "$1" = venv ]; then for last; do :; done; mkdir -p "$last"; fi
case "$*" in *no-build*) echo "error: six has no usable wheels"; exit 1;; esac
"""
SECRETS = {
    "PARALLELRUN_REDIS_URL": "redis://:secret@r", "PARALLELRUN_TOKEN": "t", "REDIS_PASSWORD": "p",
    "AWS_SECRET_ACCESS_KEY": "k", "MY_TOKEN": "t", "UV_PUBLISH_TOKEN": "t", "UV_PUBLISH_PASSWORD": "p",
    "PIP_SOME_TOKEN": "t", "UV_INDEX_OTHER_PASSWORD": "p", "UV_GITHUB_TOKEN": "t", "LC_SECRET": "s", "UV_ENV_FILE": "f",
    "GIT_ASKPASS": "/a", "GIT_CONFIG_COUNT": "1", "DOCKER_AUTH_CONFIG": "{}", "NETRC_TOKEN": "t",
}  # fmt: skip


def test_children_an_installer_gets_what_installing_takes_and_no_secret() -> None:
    check_installers()


def check_installers() -> None:
    """Compare what is passed on with what is needed."""
    assert children.variables_for(Child.INSTALLER, {**NEEDED, **SECRETS}) == NEEDED
    assert children.variables_for(Child.INSTALLER, {}) == {}


def test_children_an_installer_that_gets_everything_is_found() -> None:
    with (
        expect_failure(),
        replaced("parallelrun_core.service.children:variables_for", lambda _, variables: dict(variables)),
    ):
        check_installers()


@pytest.mark.parametrize("child", [child for child in Child if child is not Child.INSTALLER])
def test_children_no_other_program_gets_a_secret_nor_a_password_of_an_index(child: Child) -> None:
    passed = variables_for(child, {**NEEDED, **SECRETS})
    assert not passed.keys() & SECRETS.keys()
    assert not passed.keys() & with_credentials({**NEEDED, **SECRETS})


def test_children_credentials_are_told_by_name_and_by_value() -> None:
    variables = {
        **NEEDED, "NETRC": "/netrc", "UV_FIND_LINKS": "https://user:word@files/wheels", "PIP_INDEX_URL": "https://key@i",
        "http_proxy": "http://me:pw@proxy:3128", "UV_NO_INDEX": "1", "UV_PUBLISH_TOKEN": "t",
    }  # fmt: skip
    secret = {"UV_INDEX_INNER_ONE_PASSWORD", "UV_INDEX_INNER_ONE_USERNAME", "NETRC", "UV_FIND_LINKS", "PIP_INDEX_URL"}
    assert with_credentials(variables) == secret | {"http_proxy"}
    assert without_installers_secrets(variables).keys() == variables.keys() - secret - {"UV_PUBLISH_TOKEN"}


@pytest.mark.parametrize(
    "line", ["six @ https://host/${UV_INDEX_OTHER_PASSWORD}/six.whl", "--index-url https://${A}@h/"]
)
def test_children_no_text_of_a_job_names_a_variable_of_an_installer(line: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"no variable|user or password"):
        parse_requirement(line)
    with (
        replaced("parallelrun_agent.environments.build:_uv", lambda *_: None),
        pytest.raises(BuildFailed, match="no var"),
    ):
        _build(tmp_path / "environment", request_of(line))


def request_of(requirement: str) -> BuildRequest:
    recipe = Recipe(python="python", requirements=[requirement], worker="/w")
    return BuildRequest(
        folder="", recipe=recipe, lock=-1, hosts=("*",), pip_configuration="", compile=False, may_build=True
    )


def test_children_a_package_that_would_run_code_is_not_built_where_credentials_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_builds(tmp_path, monkeypatch)


def check_builds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install with a password of an index in the environment: the installer gets it, so it may run no code."""
    uv = tmp_path / "uv"
    uv.write_text(FAKE_UV)
    uv.chmod(0o755)
    monkeypatch.setattr("uv.find_uv_bin", lambda: str(uv))
    monkeypatch.setenv("UV_INDEX", "inner=https://i/simple")
    monkeypatch.setenv("UV_INDEX_INNER_PASSWORD", "p")
    try:
        _build(tmp_path / "environment", request_of("six"))
    except BuildFailed as error:
        assert "wheels only, as UV_INDEX_INNER_PASSWORD has credentials" in str(error)  # noqa: PT017 - none is a failure, too
    assert "--no-build" in (tmp_path / "uv.calls").read_text()


@pytest.mark.parametrize("name", ["UV_CONFIG_FILE", "PIP_CONFIG_FILE"])
def test_children_a_file_with_credentials_counts_as_they_do(name: str, tmp_path: Path) -> None:
    for text, names in (("index-url = https://user:word@i/simple", [name]), ("index-url = https://i/simple", [])):
        (tmp_path / "file").write_text(text)
        assert list(_files_with_credentials({name: str(tmp_path / "file")})) == names
    assert list(_files_with_credentials({name: "/nowhere/file"})) == []


def test_children_a_keyring_counts_as_credentials() -> None:
    assert with_credentials({"UV_KEYRING_PROVIDER": "subprocess"}) == {"UV_KEYRING_PROVIDER"}
    assert with_credentials({"UV_KEYRING_PROVIDER": "disabled"}) == frozenset()


def test_children_a_build_beside_credentials_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        expect_failure(),
        replaced("parallelrun_agent.environments.build:with_credentials", lambda _: frozenset()),
    ):
        check_builds(tmp_path, monkeypatch)
