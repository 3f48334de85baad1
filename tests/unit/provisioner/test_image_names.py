"""Which images nodes may have: names are read as engines read them, and a pattern never leaves the host open."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from parallelrun_provisioner.engines.docker.fetching import read_login
from parallelrun_provisioner.policy.images import is_allowed, parse


@pytest.mark.parametrize(
    "name, host, path, version",
    [
        ("python", "docker.io", "library/python", ""),
        ("python:3.12", "docker.io", "library/python", ":3.12"),
        ("team/image@sha256:00ff", "docker.io", "team/image", "@sha256:00ff"),
        ("index.docker.io/team/image:1@sha256:00ff", "docker.io", "team/image", ":1@sha256:00ff"),
        ("localhost/image", "localhost", "image", ""),
        ("registry.example.org:5000/team/image:1", "registry.example.org:5000", "team/image", ":1"),
        ("Registry/image", "registry", "image", ""),
    ],
)
def test_a_name_is_read_as_engines_read_it(name: str, host: str, path: str, version: str) -> None:
    assert parse(name) == (host, path, version)


@pytest.mark.parametrize(
    "pattern, allowed, others",
    [
        ("*", ["python", "docker.io/library/python:3"], ["team/a", "evil.example/a", "evil:1/library/a"]),
        ("good/*", ["good/a", "good/a:1", "docker.io/good/a"], ["good/a/b", "good.example/a", "evil.example/good/a"]),
        ("*/*", ["good/a"], ["evil.example/a", "localhost/a", "EVIL/a"]),
        ("**", ["a", "good/a/b"], ["evil.example/a", "good/../evil", "good//a"]),
        ("r.example/team/*", ["r.example/team/a@sha256:00"], ["r.example/team/a/b", "r.example:5000/team/a", "team/a"]),
        ("r.example/team/**", ["r.example/team/a/b:1"], ["r.example/teams/a", "xr.example/team/a"]),
        ("*.example/a", ["r.example/a"], ["a.b.example/a", "evil.org/r.example/a"]),
        ("team/a:1.*", ["team/a:1.2"], ["team/a", "team/a:2", "team/a:11"]),
        ("team/a@sha256:00ff", ["team/a@sha256:00ff"], ["team/a", "team/a:1", "team/a@sha256:00ee"]),
    ],
)  # fmt: skip
def test_a_pattern_stays_within_a_host_and_a_part(pattern: str, allowed: list[str], others: list[str]) -> None:
    assert [name for name in [*allowed, *others] if is_allowed(name, [pattern])] == allowed


def test_a_password_is_sent_to_no_other_host_than_its_own(tmp_path: Path) -> None:
    login = {"username": "me", "password": "hush"}
    by_name, by_host = tmp_path / "registry.example.org", tmp_path / "ours"
    by_name.write_text(json.dumps(login))
    by_host.write_text(json.dumps({**login, "host": "registry.example.org:5000"}))
    (tmp_path / "nowhere").write_text(json.dumps(login))
    assert read_login(by_name, "registry.example.org/team/a:1") == login
    assert read_login(by_host, "registry.example.org:5000/team/a") == login
    for file in (by_name, by_host, tmp_path / "nowhere"):
        for image in ("evil.example/team/a", "team/a", "parallelrun-kit", "registry.example.org:5001/a"):
            assert read_login(file, image) is None
