"""What a provisioner must be told, and what it must not."""

from __future__ import annotations

from pathlib import Path

import pytest

from parallelrun_core.errors import InvalidInput
from parallelrun_provisioner.settings import ProvisionerSettings


@pytest.mark.parametrize("kinds, words", [("", "name those"), ("manual", "'manual' is none"), ("docker,vm", "'vm'")])
def test_it_is_told_which_kinds_it_starts(monkeypatch: pytest.MonkeyPatch, kinds: str, words: str) -> None:
    monkeypatch.delenv("PARALLELRUN_KINDS", raising=False)
    with pytest.raises(SystemExit, match=f"--kinds: .*{words}.*docker, kubernetes, local, slurm, swarm"):
        ProvisionerSettings.from_command_line([f"--kinds={kinds}"] if kinds else [])


def test_the_first_kind_is_the_main_one() -> None:
    settings = ProvisionerSettings.from_command_line(["--kinds", " swarm, docker"])
    assert settings.served == ("swarm", "docker")
    assert not settings.serves("local")


@pytest.mark.parametrize(
    "url",
    ["redis://:hush@redis:6379/0", "redis://me@redis/0", "redis://redis/0?password=hush", "unix:///s?db=0&p%61ssword=hush"],
)  # fmt: skip
def test_a_url_with_a_password_is_told_to_no_engine(tmp_path: Path, url: str) -> None:
    flags = ["--kinds", "slurm", "--root", str(tmp_path)]
    with pytest.raises(SystemExit, match="--redis-secret-file") as at_start:
        ProvisionerSettings.from_command_line([*flags, "--node-redis-url", url])
    own = ProvisionerSettings.from_command_line([*flags, "--redis-url", url])
    with pytest.raises(InvalidInput, match="--redis-secret-file") as refused:
        own.engine_environment("c1")
    assert "hush" not in f"{at_start.value} {refused.value}"
    nodes = ProvisionerSettings.from_command_line(
        [*flags, "--redis-url", url, "--node-redis-url", "rediss://login:6380/0"]
    )
    assert nodes.engine_environment("c1").redis_url == "rediss://login:6380/0"
