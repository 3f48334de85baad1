"""Settings: flags, variables, and the safe defaults that follow from where the server listens."""

from __future__ import annotations

import stat
from pathlib import Path

import msgspec
import pytest
from pydantic import SecretStr

from parallelrun_api.http.token import Token, load_token
from parallelrun_api.settings import ApiSettings
from parallelrun_core.service.state_folder import state_folder
from parallelrun_core.storage.path_rule import EVERYWHERE, Places


@pytest.mark.parametrize(
    "host, is_loopback",
    [("127.0.0.1", True), ("127.8.8.8", True), ("::1", True), ("localhost", True), ("0.0.0.0", False),
     ("::", False), ("10.0.0.1", False), ("jobs.example", False), ("localhost.example", False)],
)  # fmt: skip
def test_loopback(host: str, is_loopback: bool) -> None:
    assert ApiSettings(host=host).is_loopback == is_loopback


def test_places(tmp_path: Path) -> None:
    own_machine = Places(roots=list(EVERYWHERE), package_hosts=["*"])
    assert ApiSettings().places == own_machine
    assert ApiSettings(host="0.0.0.0", root=tmp_path).places == Places(roots=[str(tmp_path)])
    places = ApiSettings(host="0.0.0.0", allowed_roots="/a:/b:", closed_folders="/a/c").places
    assert places == Places(roots=["/a", "/b"], closed=["/a/c"])
    assert ApiSettings(jobs_apart=True).places == msgspec.structs.replace(own_machine, are_jobs_apart=True)


def test_package_hosts_are_those_of_the_operator_and_beyond_loopback_none() -> None:
    named = ApiSettings(package_hosts=" Wheels.Example, git.example:8443 ").places.package_hosts
    assert named == ["wheels.example", "git.example:8443"]
    assert ApiSettings(host="0.0.0.0").places.package_hosts == []


def test_what_an_orchestrator_leaves_empty_names_no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARALLELRUN_TOKENS_FILE", "")
    assert ApiSettings.from_command_line([]).tokens_file is None


def test_places_in_stores_keep_their_colons() -> None:
    roots = ["/data", "s3://bucket/a", "https://h:8443/x", "http://127.0.0.1:9000", "gs://", "/b"]
    assert ApiSettings(allowed_roots=":".join(roots)).places.roots == roots


def test_hosts() -> None:
    own = {"localhost", "127.0.0.1", "[::1]"}
    assert ApiSettings().hosts == own
    assert ApiSettings(host="127.8.8.8").hosts == own | {"127.8.8.8"}
    assert ApiSettings(host="0.0.0.0").hosts == frozenset()
    assert ApiSettings(host="0.0.0.0", allowed_hosts="A.example, b.example").hosts == own | {"a.example", "b.example"}


def test_flags_and_variables_have_the_same_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARALLELRUN_PORT", "81")
    monkeypatch.setenv("parallelrun_allowed_roots", "/data")
    monkeypatch.setenv("PARALLELRUN_HEAD_SECONDS", "1")

    flags = ["--max-body-bytes", "5000", "--allow-volatile-redis", "--no-insecure", "--head-seconds=2.5"]
    settings = ApiSettings.from_command_line(flags)

    assert (settings.port, settings.allowed_roots, settings.max_body_bytes) == (81, "/data", 5000)
    assert (settings.allow_volatile_redis, settings.insecure, settings.head_seconds) == (True, False, 2.5)
    with pytest.raises(SystemExit, match=r"--visibility: .*'all' or 'own'"):
        ApiSettings.from_command_line(["--visibility", "nobody"])
    with pytest.raises(SystemExit, match="2"):
        ApiSettings.from_command_line(["--max-body", "5000"])


def test_a_token_is_never_printed() -> None:
    assert "canary" not in repr(ApiSettings(token=SecretStr("canary")))


@pytest.mark.parametrize("token", ["a b", "ü", "a\nb"])
def test_tokens_that_no_header_can_carry(token: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="visible ASCII"):
        ApiSettings(token=SecretStr(token))
    (tmp_path / "file").write_text(token)
    with pytest.raises(ValueError, match="visible ASCII"):
        load_token(ApiSettings(token_file=tmp_path / "file"))


def test_a_token_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        load_token(ApiSettings(token_file=tmp_path / "none"))


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
def test_a_token_is_made_in_a_file_of_this_user(host: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    settings = ApiSettings(root=tmp_path / "root", host=host)
    token = load_token(settings)
    path = state_folder() / "token"

    assert len(token.text) >= 40
    assert token[:2] == (path.read_text().strip(), str(path)) == load_token(settings)[:2]
    assert (stat.S_IMODE(path.stat().st_mode), stat.S_IMODE(path.parent.stat().st_mode)) == (0o600, 0o700)
    assert not (tmp_path / "root").exists()


def test_no_token_is_an_explicit_wish_on_a_loopback_address(tmp_path: Path) -> None:
    assert load_token(ApiSettings(root=tmp_path, insecure=True)) == Token()
    with pytest.raises(ValueError, match=r"--insecure is refused for 0\.0\.0\.0"):
        load_token(ApiSettings(root=tmp_path, insecure=True, host="0.0.0.0"))
    for others in ({"token": SecretStr("t")}, {"token_file": tmp_path}, {"tokens_file": tmp_path}):
        with pytest.raises(ValueError, match="contradict each other"):
            load_token(ApiSettings(root=tmp_path, insecure=True, **others))


def test_a_token_that_others_can_read_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    load_token(ApiSettings(root=tmp_path / "root"))
    path = state_folder() / "token"
    path.chmod(0o640)
    with pytest.raises(ValueError, match="others can read"):
        load_token(ApiSettings(root=tmp_path / "root"))
    (tmp_path / "elsewhere").write_text("token")
    path.unlink()
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ValueError, match="not a file of this user"):
        load_token(ApiSettings(root=tmp_path / "root"))


def test_a_token_where_workers_can_read_it_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    old = tmp_path / "token"
    old.write_text("of-an-earlier-release\n")
    assert load_token(ApiSettings(root=tmp_path, token_file=old)).text == "of-an-earlier-release"
    assert old.exists(), "it is the one that the settings name"

    assert load_token(ApiSettings(root=tmp_path)).text != "of-an-earlier-release"
    assert not old.exists()
