"""Settings: flags, variables, and the safe defaults that follow from where the server listens."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import SecretStr

from parallelrun_api.http.auth import load_token
from parallelrun_api.settings import ApiSettings


@pytest.mark.parametrize(
    "host, is_loopback",
    [("127.0.0.1", True), ("127.8.8.8", True), ("::1", True), ("localhost", True), ("0.0.0.0", False),
     ("::", False), ("10.0.0.1", False), ("jobs.example", False), ("localhost.example", False)],
)  # fmt: skip
def test_loopback(host: str, is_loopback: bool) -> None:
    assert ApiSettings(host=host).is_loopback == is_loopback


def test_roots(tmp_path: Path) -> None:
    assert ApiSettings().roots == [Path("/")]
    assert ApiSettings(host="0.0.0.0", root=tmp_path).roots == [tmp_path]
    assert ApiSettings(host="0.0.0.0", allowed_roots="/a:/b:").roots == [Path("/a"), Path("/b")]


def test_hosts() -> None:
    own = {"localhost", "127.0.0.1", "[::1]"}
    assert ApiSettings().hosts == own
    assert ApiSettings(host="127.8.8.8").hosts == own | {"127.8.8.8"}
    assert ApiSettings(host="0.0.0.0").hosts == frozenset()
    assert ApiSettings(host="0.0.0.0", allowed_hosts="A.example, b.example").hosts == own | {"a.example", "b.example"}


def test_flags_and_variables_have_the_same_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARALLELRUN_PORT", "81")
    monkeypatch.setenv("PARALLELRUN_ALLOWED_ROOTS", "/data")

    settings = ApiSettings.from_command_line(["--max-body-bytes", "5000", "--allow-volatile-redis"])

    assert (settings.port, settings.allowed_roots, settings.max_body_bytes) == (81, "/data", 5000)
    assert settings.allow_volatile_redis


def test_a_token_is_never_printed() -> None:
    assert "secret" not in repr(ApiSettings(token=SecretStr("secret")))


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


def test_no_token_on_a_loopback_address(tmp_path: Path) -> None:
    assert load_token(ApiSettings(root=tmp_path)) == ""
    assert list(tmp_path.iterdir()) == []
