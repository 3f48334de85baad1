"""What one run() has written is set aside, whole and with nothing of any other."""

from __future__ import annotations

from pathlib import Path

import pytest

from parallelrun_worker.outputs import Outputs


@pytest.fixture
def folders(tmp_path: Path) -> list[Path]:
    made = [tmp_path / "live" / str(number) for number in range(2)]
    for each in made:
        each.mkdir(parents=True)
    return made


@pytest.fixture
def outputs(tmp_path: Path, folders: list[Path]) -> Outputs:
    return Outputs([str(each) for each in folders], str(tmp_path / "aside"))


def aside(tmp_path: Path, mini_batch: int) -> dict[str, str]:
    root = tmp_path / "aside" / str(mini_batch)
    return {str(path.relative_to(root)): path.read_text() for path in root.rglob("*") if path.is_file()}


def test_files_keep_their_paths_and_folders_stay(tmp_path: Path, folders: list[Path], outputs: Outputs) -> None:
    (folders[0] / "a" / "b").mkdir(parents=True)
    (folders[0] / "a" / "b" / "x").write_text("1")
    (folders[1] / ".y").write_text("2")
    assert outputs.set_aside(7) == 2
    assert aside(tmp_path, 7) == {"0/a/b/x": "1", "1/.y": "2"}
    assert (folders[0] / "a" / "b").is_dir()
    assert outputs.set_aside(8) == 0
    assert not (tmp_path / "aside" / "8").exists()


def test_what_an_earlier_try_has_set_aside_is_gone(tmp_path: Path, folders: list[Path], outputs: Outputs) -> None:
    (folders[0] / "first").write_text("1")
    outputs.set_aside(7)
    (folders[0] / "second").write_text("2")
    outputs.set_aside(7)
    assert aside(tmp_path, 7) == {"0/second": "2"}


def test_a_try_that_failed_leaves_nothing(tmp_path: Path, folders: list[Path], outputs: Outputs) -> None:
    (folders[0] / "of init").write_text("0")
    outputs.begin()
    (folders[0] / "of the try").write_text("1")
    outputs.discard()
    assert outputs.set_aside(7) == 1
    assert aside(tmp_path, 7) == {"0/of init": "0"}


def test_a_file_that_is_open_stays_until_it_is_closed(tmp_path: Path, folders: list[Path], outputs: Outputs) -> None:
    with (folders[0] / "log").open("w") as log:
        log.write("1")
        assert outputs.set_aside(1) == 0
        log.write("2")
        outputs.discard()  # the second one has failed: the first one's line is in it
    assert outputs.set_aside(3) == 1
    assert aside(tmp_path, 3) == {"0/log": "12"}


def test_a_folder_that_the_script_has_removed_has_nothing(folders: list[Path], outputs: Outputs) -> None:
    for each in folders:
        each.rmdir()
    assert outputs.set_aside(1) == 0


def test_of_parts_only_what_went_well_is_kept(tmp_path: Path, folders: list[Path], outputs: Outputs) -> None:
    (folders[0] / "of init").write_text("0")
    outputs.begin()
    (folders[0] / "a").write_text("1")
    outputs.set_part_aside(7)
    (folders[0] / "bad").write_text("2")
    outputs.discard_part()
    (folders[1] / "b").write_text("3")
    outputs.set_part_aside(7)
    assert outputs.set_aside(7) == 3
    assert aside(tmp_path, 7) == {"0/of init": "0", "0/a": "1", "1/b": "3"}


def test_a_part_that_fails_changes_no_file_of_another(tmp_path: Path, folders: list[Path], outputs: Outputs) -> None:
    (folders[0] / "a").write_text("1")
    outputs.set_part_aside(7)
    with (folders[0] / "a").open("a") as file:
        file.write("2")
    outputs.discard_part()
    assert outputs.set_aside(7) == 1
    assert aside(tmp_path, 7) == {"0/a": "1"}


def test_parts_that_write_the_same_file_are_none(tmp_path: Path, folders: list[Path], outputs: Outputs) -> None:
    (folders[0] / "of init").write_text("0")
    outputs.begin()
    (folders[0] / "a").write_text("1")
    outputs.set_part_aside(7)
    (folders[0] / "a").write_text("2")
    with pytest.raises(FileExistsError, match="two parts have written 'a'"):
        outputs.set_part_aside(7)
    outputs.discard()
    assert outputs.set_aside(8) == 1
    assert aside(tmp_path, 8) == {"0/of init": "0"}, "what init() has written is of the next one"
    assert outputs.set_aside(7) == 0
