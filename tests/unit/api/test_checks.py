"""Whether an input holds a file is seen as it will be listed."""

from __future__ import annotations

from pathlib import Path

from parallelrun_api.checks import _holds_a_file


def test_files_behind_links_to_folders_count(tmp_path: Path) -> None:
    (tmp_path / "data" / "deep").mkdir(parents=True)
    (tmp_path / "data" / "deep" / "file").touch()
    links = tmp_path / "links"
    links.mkdir()
    assert not _holds_a_file(links)
    (links / "one").symlink_to(tmp_path / "data")
    assert _holds_a_file(links)


def test_links_that_lead_back_end_the_search(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "up").symlink_to(tmp_path)
    _holds_a_file(tmp_path)


def test_a_link_that_leads_to_itself_is_listed_as_a_file(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    assert _holds_a_file(tmp_path)
