"""The catalog of assets: versions that never change, labels, what is archived."""

from __future__ import annotations

import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from parallelrun_core.assets.catalog import About, Catalog
from parallelrun_core.errors import Conflict, InvalidInput
from parallelrun_core.names.assets import UnknownAsset, UnknownVersion

IMAGES = {"type": "uri_folder", "path": "/data/images"}
OTHER = {"type": "uri_folder", "path": "/data/others"}


def add(catalog: Catalog, version: str = "", content: dict[str, str] = IMAGES) -> str:
    return catalog.add("data", "images", dict(content), version=version)[0].version


def test_a_version_never_changes(tmp_path: Path) -> None:
    catalog = Catalog(tmp_path)
    first, is_new = catalog.add("data", "images", IMAGES, version="1", about=About(description="ours"))
    assert is_new
    again, is_new = catalog.add("data", "images", IMAGES, version="1")
    assert (again, is_new) == (first, False)
    with pytest.raises(Conflict, match=r"another content \(path\), and a version never changes"):
        catalog.add("data", "images", OTHER, version="1")
    assert Catalog(tmp_path).get("data", "images", "1").content == IMAGES


def test_what_is_said_of_a_version_may_change(tmp_path: Path) -> None:
    catalog = Catalog(tmp_path)
    catalog.add("data", "images", IMAGES, version="1", about=About(description="ours", tags={"a": "b"}))
    catalog.add("data", "images", IMAGES, version="1", about=About(description="theirs"))
    asset = catalog.get("data", "images", "1")
    assert (asset.description, asset.tags, asset.content) == ("theirs", {}, IMAGES)


def test_the_next_version_is_the_number_after_the_highest(tmp_path: Path) -> None:
    catalog = Catalog(tmp_path)
    assert [add(catalog), add(catalog), add(catalog, "7"), add(catalog, "2026-01"), add(catalog)] == [
        "1", "2", "7", "2026-01", "8",
    ]  # fmt: skip


def test_many_at_once_get_a_version_each(tmp_path: Path) -> None:
    catalog = Catalog(tmp_path)
    with ThreadPoolExecutor(8) as pool:
        versions = list(pool.map(lambda _: add(catalog), range(24)))
    assert sorted(map(int, versions)) == list(range(1, 25))


def test_latest_is_what_was_created_last_and_is_not_archived(tmp_path: Path) -> None:
    catalog = Catalog(tmp_path)
    for version in ("9", "zebra", "2"):
        add(catalog, version)
    assert catalog.labelled("data", "images", "latest").version == "2"
    assert [each.version for each in catalog.versions("data", "images")] == ["2", "zebra", "9"]
    catalog.set_archived("data", "images", "2", is_archived=True)
    assert catalog.labelled("data", "images", "latest").version == "zebra"
    catalog.set_archived("data", "images", "2", is_archived=False)
    assert catalog.labelled("data", "images", "latest").version == "2"


def test_the_latest_of_many_large_versions_takes_the_memory_of_one(tmp_path: Path) -> None:
    catalog = Catalog(tmp_path)
    for number in range(30):
        add(catalog, content={**IMAGES, "path": f"/{number}/" + "x" * (1 << 20)})
    tracemalloc.start()
    try:
        latest = catalog.latest("data", "images")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert latest is not None
    assert latest.version == "30"
    assert peak < 8 << 20
    assert catalog.ordered("data", "images") == [str(number) for number in range(30, 0, -1)]


def test_what_is_archived_is_hidden_and_found_by_its_name(tmp_path: Path) -> None:
    catalog = Catalog(tmp_path)
    add(catalog), add(catalog)
    catalog.set_archived("data", "images", "1", is_archived=True)
    assert [each.version for each in catalog.versions("data", "images")] == ["2"]
    assert [each.version for each in catalog.versions("data", "images", with_archived=True)] == ["2", "1"]
    assert catalog.get("data", "images", "1").is_archived
    catalog.set_archived("data", "images", "", is_archived=True)
    assert (catalog.names("data"), catalog.names("data", with_archived=True)) == ([], ["images"])
    assert catalog.labelled("data", "images", "latest").version == "2"
    catalog.set_archived("data", "images", "", is_archived=False)
    assert catalog.names("data") == ["images"]
    assert catalog.get("data", "images", "1").is_archived, "it was archived by itself"


def test_a_label_stands_for_a_version_until_another_has_it(tmp_path: Path) -> None:
    catalog = Catalog(tmp_path)
    add(catalog), add(catalog)
    catalog.set_label("data", "images", "stable", "1")
    assert catalog.labelled("data", "images", "stable").version == "1"
    catalog.set_label("data", "images", "stable", "2")
    assert (catalog.labelled("data", "images", "stable").version, catalog.labels("data", "images")) == (
        "2", {"stable": "2"},
    )  # fmt: skip
    catalog.remove_label("data", "images", "stable")
    with pytest.raises(UnknownVersion, match="it has latest"):
        catalog.labelled("data", "images", "stable")
    with pytest.raises(InvalidInput, match="created last"):
        catalog.set_label("data", "images", "latest", "1")


def test_an_unknown_name_says_what_there_is(tmp_path: Path) -> None:
    catalog = Catalog(tmp_path)
    with pytest.raises(UnknownAsset, match="there is none yet; make one with `parallelrun data create"):
        catalog.get("data", "images", "1")
    add(catalog)
    with pytest.raises(UnknownAsset, match="did you mean 'images'"):
        catalog.labelled("data", "image", "latest")
    with pytest.raises(UnknownVersion, match=r"no such version \(it has 1\)"):
        catalog.get("data", "images", "2")
    with pytest.raises(UnknownAsset):
        catalog.get("model", "images", "1")


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", ".a", "a\0", "a b", "-", "ä", "x" * 129, "a\n"])
def test_no_name_leads_out_of_its_folder(tmp_path: Path, name: str) -> None:
    catalog = Catalog(tmp_path / "root")
    with pytest.raises(InvalidInput):
        catalog.add("data", name, IMAGES)
    with pytest.raises(UnknownAsset):
        catalog.get("data", name, "1")
    add(catalog)
    for version in filter(None, (name,)):
        with pytest.raises(InvalidInput):
            add(catalog, version)
        with pytest.raises(UnknownVersion):
            catalog.get("data", "images", version)
    with pytest.raises(InvalidInput):
        catalog.set_label("data", "images", name, "1")
    with pytest.raises(InvalidInput):
        catalog.names(name)
    assert [each.name for each in tmp_path.iterdir()] == ["root"]
