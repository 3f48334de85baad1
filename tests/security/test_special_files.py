"""Pipes, devices and files without an end keep no service busy, and what the kernel says of processes is no file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from parallelrun_core.errors import InvalidInput
from parallelrun_core.mltable.document import load_mltable
from parallelrun_core.storage.local.listing import LocalListing
from parallelrun_core.storage.path_rule import PathRule, Places
from parallelrun_core.storage.stores import storage_of
from parallelrun_core.untrusted.document import MAX_DOCUMENT_BYTES
from parallelrun_core.untrusted.paths import open_ordinary
from tests.security import path_target
from tests.security.attacks.special_files import ATTACKS
from tests.security.path_target import PathTarget

BY_NAME = {attack.name: attack for attack in ATTACKS}
check_attack = partial(path_target.check_attack, BY_NAME)
TABLES = "pipes, sockets, devices and files without an end as what jobs name"
LINKS = "links of processes as what jobs name"
AMONG = "links to pipes and devices among the inputs"


@pytest.fixture(scope="module")
def target() -> Iterator[PathTarget]:
    with path_target.running() as target:
        yield target


@pytest.mark.integration
@pytest.mark.parametrize("name", BY_NAME)
def test_what_is_no_ordinary_file_keeps_no_service_busy(name: str, target: PathTarget) -> None:
    assert BY_NAME[name].play(target) == ""


def test_only_an_ordinary_file_is_opened(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"content")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("/dev/zero")

    with open_ordinary(tmp_path / "file") as file, storage_of("/").open(str(tmp_path / "file")) as same:
        assert (file.read(), same.read()) == (b"content", b"content")
    for name in ("pipe", "link", ".", "none"):
        with pytest.raises(OSError, match=r"ordinary|directory|No such"):
            storage_of("/").open(str(tmp_path / name))


def test_a_listing_leaves_out_links_to_what_holds_no_data(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    os.mkfifo(tmp_path / "pipe")
    for name, leads_to in (
        ("to-pipe", "pipe"),
        ("to-device", "/dev/zero"),
        ("to-nothing", "none"),
        ("to-file", "file"),
    ):
        (tmp_path / name).symlink_to(leads_to)

    assert [names for _, names in LocalListing(str(tmp_path))] == [[b"file", b"to-file", b"to-nothing"]]


def test_a_link_of_a_process_is_not_what_it_leads_to_now(tmp_path: Path) -> None:
    (tmp_path / "root").symlink_to("/proc/self/root")
    rule = PathRule(tmp_path / "cluster", Places(roots=[str(tmp_path)]))

    for way in ("/proc/self/root", "/proc/self/cwd" + "/.." * 30, f"{tmp_path}/root", "/dev/fd/../root"):
        refusal = rule.refusal(f"{way}{tmp_path}/file")
        assert refusal is not None
        assert "no file on a disk" in refusal.message


def test_a_table_that_is_too_large_is_refused(tmp_path: Path) -> None:
    (tmp_path / "MLTable").write_bytes(b"#" * (MAX_DOCUMENT_BYTES + 1))

    with pytest.raises(InvalidInput) as refused:
        load_mltable(str(tmp_path))

    assert [problem.message for problem in refused.value.problems] == ["this document is larger than 1 MiB"]
