"""The Python of a node's image: found on its path, asked for its packages, and recognized by them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from parallelrun_agent.environments.image_python import ImagePython, NoPython
from parallelrun_agent.environments.recipe import recipes_of
from parallelrun_core.spec import Environment


def python(folder: Path, text: str) -> dict[str, str]:
    """The variables of an image whose python3 is this shell script."""
    folder.mkdir()
    file = folder / "python3"
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(0o755)
    return {"PATH": f"{folder}:/usr/bin:/bin"}


def test_it_is_the_first_on_the_images_path_with_its_own_packages(tmp_path: Path) -> None:
    there = ImagePython.find(python(tmp_path / "bin", f'exec {sys.executable} "$@"'))

    assert there.executable == sys.executable
    assert any(Path(folder).name in {"site-packages", "dist-packages"} for folder in there.packages)


@pytest.mark.parametrize(
    "text, why",
    [
        ("echo no library >&2; exit 127", "ends with 127: no library"),
        ("""echo '[[3, 7, 1], "/usr/bin/python3", [], []]'""", r"need Python 3\.8 or newer; .* is 3\.7\.1"),
        ("echo hello", "doesn't answer"),
    ],
)
def test_one_that_workers_can_not_use_is_refused_with_a_reason(tmp_path: Path, text: str, why: str) -> None:
    with pytest.raises(NoPython, match=why):
        ImagePython.find(python(tmp_path / "bin", text))


def test_an_image_without_a_python_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NoPython, match="no python3 on its path"):
        ImagePython.find({"PATH": str(tmp_path)})


def test_our_settings_are_not_told_to_the_images_python(tmp_path: Path) -> None:
    script = """echo "[[3, 9, 1], \\"$PARALLELRUN_REDIS_SECRET$LANG\\", [], []]\""""
    variables = python(tmp_path / "bin", script) | {"PARALLELRUN_REDIS_SECRET": "swordfish", "LANG": "C.UTF-8"}

    assert ImagePython.find(variables).executable == "C.UTF-8"


def test_environments_of_images_with_other_packages_are_others(tmp_path: Path) -> None:
    one, same, other = (ImagePython("/usr/bin/python3", (), content) for content in ("a", "a", "b"))
    wish = Environment(pip=("six",))
    folders = [recipes_of(wish, "anna", image)[0].folder(tmp_path) for image in (one, same, other, None)]

    assert folders[0] == folders[1]
    assert len(set(folders)) == 3
