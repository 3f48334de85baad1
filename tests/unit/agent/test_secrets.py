"""What a node takes for the value of a secret, and what it says when it has none."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from unittest.mock import Mock

import pytest

from parallelrun_agent.settings import AgentSettings
from parallelrun_agent.workers.secrets import SecretMissing, secret_values
from parallelrun_core.service.process_secrets import ProcessSecrets
from parallelrun_core.service.secret_source import SecretUnavailable
from parallelrun_core.spec.secrets import Secret


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "secrets"
    made.mkdir(mode=0o700)
    (made / "below").mkdir()
    (made / "below" / "key").write_text("line one\nline two\r\n")
    (tmp_path / "outside").write_text("not a secret")
    (made / "link").symlink_to(tmp_path / "outside")
    (made / "empty").write_text("\n")
    (made / "bytes").write_bytes(b"\xff")
    (made / "nul").write_bytes(b"a\0b")
    (made / "large").write_text("x" * (64 << 10) + "x")
    return made


def values(secrets: Mapping[str, Secret], folder: Path | None) -> dict[str, str]:
    return secret_values(secrets, AgentSettings(node="node-a"), ProcessSecrets(str(folder or "")))


def test_values_come_from_the_agents_environment_and_from_its_folder(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PARALLELRUN_SECRET_NAME", " as it is ")
    secrets = {"A": Secret(env="NAME"), "B": Secret(file="below/key")}
    assert values(secrets, folder) == {"A": " as it is ", "B": "line one\nline two"}


@pytest.mark.parametrize(
    "secret, reason",
    [
        (Secret(env="OTHER"), "Secret KEY isn't on node node-a: .* PARALLELRUN_SECRET_OTHER"),
        (Secret(env="PATH"), "isn't on node"),  # without the prefix, it is the agent's own
        (Secret(file="none"), "isn't on node node-a: put it into .*/secrets/none"),
        (Secret(file="link"), "no links"),
        (Secret(file="below"), "must be a text"),
        (Secret(file="empty"), "must be a text"),
        (Secret(file="bytes"), "must be a text"),
        (Secret(file="nul"), "must be a text"),
        (Secret(file="large"), "at most 65,536 bytes"),
    ],
    ids=str,
)
def test_what_is_not_there_or_cannot_be_one_is_named_with_its_node(folder: Path, secret: Secret, reason: str) -> None:
    with pytest.raises(SecretMissing, match=reason):
        values({"KEY": secret}, folder)


def test_a_folder_that_others_can_enter_is_not_used(folder: Path) -> None:
    folder.chmod(0o750)
    with pytest.raises(SecretMissing, match="chmod 700"):
        values({"KEY": Secret(file="below/key")}, folder)


@pytest.mark.parametrize(
    "where, advice", [(None, r"--secrets-dir, .* as below/key\."), (Path("/nowhere/secrets"), "folder of secrets")]
)
def test_a_node_without_a_folder_says_so(where: Path | None, advice: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SecretMissing, match=advice) as missing:
        values({"KEY": Secret(file="below/key")}, where)
    assert not missing.value.is_for_now
    monkeypatch.setattr(ProcessSecrets, "read", Mock(side_effect=SecretUnavailable("ask again in a minute")))
    with pytest.raises(SecretMissing, match="can't be read on node node-a just now: ask again in a minute") as away:
        values({"KEY": Secret(file="below/key")}, where)
    assert away.value.is_for_now
