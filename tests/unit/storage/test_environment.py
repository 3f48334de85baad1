"""What a machine has for stores is found under the names that the stores' own tools have for it."""

from __future__ import annotations

import json
import os
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from parallelrun_core.datastores.credentials import ServicePrincipal
from parallelrun_core.storage.objects import clients
from parallelrun_core.storage.objects.clients import client_of
from parallelrun_core.storage.objects.datastores import azure_token
from parallelrun_core.storage.objects.environment import NoCredentials, azure_options, s3_credentials, s3_region


@pytest.fixture(autouse=True)
def forgotten() -> None:
    clients.forget()


def test_azures_own_names_count_where_the_library_has_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT", "account")
    monkeypatch.setenv("AZURE_STORAGE_KEY", "a2V5")
    assert azure_options() == {"account_name": "account", "account_key": "a2V5"}
    for url in ("az://container", "abfss://c@account.dfs.core.windows.net", "abfss://c@other.dfs.core.windows.net"):
        client_of(url)
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", "known-to-the-library")
    assert azure_options() == {"account_key": "a2V5"}


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The home of somebody without any setting for S3."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def test_a_region_is_found_wherever_the_command_line_of_aws_finds_it(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert s3_region() == "us-east-1"
    (home / "config").write_text("[default]\nregion = eu-west-1\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(home / "config"))
    assert s3_region() == "eu-west-1"
    monkeypatch.delenv("AWS_CONFIG_FILE")
    (home / ".aws").mkdir()
    (home / ".aws" / "credentials").write_text("[default]\nregion = eu-west-2\n")
    assert s3_region() == "eu-west-2"
    for name in ("AWS_DEFAULT_REGION", "AWS_REGION"):
        monkeypatch.setenv(name, name)
        assert s3_region() == name


def test_a_profile_of_sso_without_a_login_is_told_in_words(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / ".aws").mkdir()
    (home / ".aws" / "config").write_text(
        "[profile work]\nsso_start_url = https://sso.example/start\nsso_region = eu-west-1\n"
        "sso_account_id = 123456789012\nsso_role_name = Reader\n"
    )
    monkeypatch.setenv("AWS_PROFILE", "work")
    with pytest.raises(NoCredentials, match=r"SSO.*AWS_PROFILE"):
        s3_credentials()


class Authority(BaseHTTPRequestHandler):
    """Answers as Azure's does."""

    def do_POST(self) -> None:
        form = self.rfile.read(int(self.headers["Content-Length"])).decode()
        is_right = "client_secret=right" in form and self.path == "/tenant/oauth2/v2.0/token"
        self.send_response(200 if is_right else 401)
        self.end_headers()
        self.wfile.write(json.dumps({"access_token": "token", "expires_in": 3600}).encode())

    def log_message(self, *_: object) -> None:
        pass


def test_an_application_of_azure_gets_a_token_and_an_error_has_no_secret() -> None:
    with HTTPServer(("127.0.0.1", 0), Authority) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        assert azure_token(ServicePrincipal("tenant", "client", "right", url))["token"] == "token"
        with pytest.raises(OSError, match="refuses a token for client") as refused:
            azure_token(ServicePrincipal("tenant", "client", "canary", url))
        assert "canary" not in repr(refused.value)
        server.shutdown()
    with pytest.raises(OSError, match="https://"):
        azure_token(ServicePrincipal("tenant", "client", "canary", "http://elsewhere.example"))
