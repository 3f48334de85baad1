"""What an image is built of: the files of a folder but for those that its `.dockerignore` names, as Docker reads it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from parallelrun.packaging.code import zip_context
from parallelrun_api.submission.build_contexts import with_context_stored
from parallelrun_core.code.context import CONTEXT, context_files, snapshot_context
from parallelrun_core.code.docker_ignore import DockerIgnore
from parallelrun_core.code.folder import code_files
from parallelrun_core.code.snapshots import snapshot_zip
from parallelrun_core.errors import InvalidInput
from parallelrun_core.spec import JobSpec
from parallelrun_core.storage.path_rule import PathRule, Places


def context(folder: Path, **files: str) -> Path:
    """A folder with a Dockerfile and these files, in whose names `__` is a `/` and `_` is a `.`."""
    for name, text in {"Dockerfile": "FROM base\n", **files}.items():
        path = folder / name.replace("__", "/").replace("_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def names_in(folder: Path, dockerfile: str = "Dockerfile") -> set[str]:
    return {"/".join(parts) for parts, _, _ in context_files(folder, dockerfile)}


@pytest.mark.parametrize(
    "lines, left_out, taken",
    [
        (["data"], ["data", "data/x", "data/y/z"], ["sub/data", "data.txt"]),
        (["*.log"], ["a.log"], ["sub/a.log"]),
        (["**/*.log"], ["a.log", "sub/a.log", "x/y/a.log"], ["a.logs"]),
        (["/data/"], ["data/x"], ["sub/data/x"]),
        (["a/**/b"], ["a/b", "a/x/b", "a/x/y/b/c"], ["b"]),
        (["a/**"], ["a/x", "a/x/y"], ["b/a"]),
        (["*", "!keep", "!src/*.py"], ["x", "src/x.txt"], ["keep", "keep/all", "src/a.py"]),
        (["*.md", "!README.md", "README.md"], ["README.md"], []),
        (["a?c", "[0-9]*"], ["abc", "7z"], ["ac", "z7"]),
        (["# comment", "", "  b  "], ["b"], ["# comment", "comment"]),
        (["a\\*b"], ["a*b"], ["axb"]),
        (["**.py"], ["a.py", "x/y.py"], ["a.pyc", "x/y"]),
        (["a**"], ["a", "ab", "ab/c"], ["ba"]),
        (["a**b"], ["ab", "axb", "ax/y/zb"], ["b", "a/x"]),
        (["**"], ["a", "a/b"], []),
        (["*a*b*"], ["ab", "xaybz", "aab"], ["ba", "a/b"]),
    ],
)
def test_the_ignore_file_is_read_as_docker_does(lines: list[str], left_out: list[str], taken: list[str]) -> None:
    ignored = DockerIgnore(lines, "Dockerfile")
    assert [path for path in left_out if not ignored.match_file(path)] == []
    assert [path for path in taken if ignored.match_file(path)] == []


def test_the_dockerfile_is_taken_whatever_the_ignore_file_says(tmp_path: Path) -> None:
    context(tmp_path, docker__Dockerfile="FROM base\n", docker__other="x", a_txt="x", _dockerignore="*\n")
    assert names_in(tmp_path, "docker/Dockerfile") == {"docker/Dockerfile"}


def test_a_pattern_is_not_tried_in_all_the_ways_that_there_are() -> None:
    """There would be 10^18 of them, and while they are tried, the server does nothing else."""
    ignored = DockerIgnore(["*a" * 12 + "b", "/".join(["**", "a*"] * 12) + "/b"], "Dockerfile")
    assert not ignored.match_file("/".join(["a" * 200] * 20))


def _fifo(path: Path) -> None:
    os.mkfifo(path)


@pytest.mark.parametrize(
    "make, message",
    [
        (_fifo, "is no file of that folder"),
        (lambda path: path.symlink_to("/dev/zero"), "is no file of that folder"),
        (lambda path: path.symlink_to("/etc/passwd"), "is no file of that folder"),
        (lambda path: path.symlink_to(path), "can't be read"),
        (lambda path: path.write_text("# \n" * 30_000), "more than 64 KiB"),
        (lambda path: path.write_text("x\n*a*a*a*a\n"), "line 2 of .* has more than 3"),
        (lambda path: path.write_text("**/a/**/b/**/c/**\n"), "line 1 of .* has more than 3"),
    ],
)
def test_an_ignore_file_that_would_hang_or_tell_is_refused(
    tmp_path: Path, make: Callable[[Path], object], message: str
) -> None:
    for name, take in ((".dockerignore", names_in), (".amlignore", lambda folder: list(code_files(folder)))):
        folder = context(tmp_path / name)
        make(folder / name)
        with pytest.raises(InvalidInput, match=message):
            take(folder)


def test_a_dockerfile_in_a_folder_that_is_never_taken_is_missed_at_once(tmp_path: Path) -> None:
    context(tmp_path, venv__pyvenv_cfg="", venv__Dockerfile="FROM base\n")
    with pytest.raises(InvalidInput, match="no file 'venv/Dockerfile'"):
        names_in(tmp_path, "venv/Dockerfile")


def test_files_that_nest_too_deep_are_refused(tmp_path: Path) -> None:
    context(tmp_path).joinpath(*["d"] * 120).mkdir(parents=True)
    with pytest.raises(InvalidInput, match="deeper than 100 folders"):
        names_in(tmp_path)


def test_a_folder_that_holds_the_clusters_own_files_is_no_context(tmp_path: Path) -> None:
    root = context(tmp_path, cluster__jobs__j__keys__session="secret") / "cluster"
    rule = PathRule(root, Places(roots=[str(tmp_path)]))
    build = {"path": str(tmp_path), "dockerfile_path": "Dockerfile"}
    placed = {"compute": "nodes", "environment": {"build": build}}
    spec = JobSpec.parse({"command": "true"})
    with pytest.raises(InvalidInput, match="own files"):
        with_context_stored(root, rule, spec, placed)
    assert not list(root.glob("code/*"))


def test_what_a_folder_has_that_is_left_out_is_not_even_looked_at(tmp_path: Path) -> None:
    context(tmp_path, _dockerignore="data\n", data__x="x")
    (tmp_path / "data" / "link").symlink_to("/etc")
    assert names_in(tmp_path) == {"Dockerfile", ".dockerignore"}


def test_one_content_has_one_name_whoever_takes_it(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    first = context(tmp_path / "a", lib__x_py="1", _dockerignore="*.tmp\n", b_tmp="of one machine")
    second = context(tmp_path / "b", lib__x_py="1", _dockerignore="*.tmp\n")
    with zip_context(first, "Dockerfile") as sent:
        by_zip = snapshot_zip(sent, tmp_path / "zipped")
    names = {by_zip, *(snapshot_context(each, "Dockerfile", tmp_path / "store") for each in (first, second))}
    assert len(names) == 1
    (second / "lib" / "x.py").write_text("2")
    assert snapshot_context(second, "Dockerfile", tmp_path / "store") not in names


@pytest.mark.parametrize(
    "spoil, dockerfile, pointer, message",
    [
        (lambda folder: (folder / "out").symlink_to("/etc"), "Dockerfile", CONTEXT.pointer, "out is a link to outside"),
        (lambda folder: None, "Nowhere", "/environment/build/dockerfile_path", "no file 'Nowhere'"),
        (lambda folder: (folder / ".dockerignore").write_text("[z-a]\n"), "Dockerfile", CONTEXT.pointer, "no pattern"),
    ],
)
def test_what_can_not_be_taken_is_told_where_it_stands(
    tmp_path: Path, spoil: object, dockerfile: str, pointer: str, message: str
) -> None:
    spoil(context(tmp_path))  # type: ignore[operator]
    for take in (lambda: list(context_files(tmp_path, dockerfile)), lambda: zip_context(tmp_path, dockerfile)):
        with pytest.raises(InvalidInput, match=message) as refused:
            take()
        assert refused.value.problems[0].pointer == pointer


def test_too_much_is_refused_with_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    context(tmp_path, a_txt="x")
    monkeypatch.setattr("parallelrun.packaging.code.CONTEXT", CONTEXT.__class__(**{**vars(CONTEXT), "files": 1}))
    with pytest.raises(InvalidInput, match="holds more than 1 files") as refused:
        zip_context(tmp_path, "Dockerfile")
    assert ".dockerignore" in refused.value.problems[0].hint
