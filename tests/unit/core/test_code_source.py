"""Code with files and folders that are put beside it: the same by a folder, by a zip, and for whoever reads it."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from parallelrun.packaging.code import zip_sources
from parallelrun.packaging.submission import without_its_code
from parallelrun_core.code.snapshots import snapshot_folder, snapshot_zip
from parallelrun_core.code.source import CodeSource, source_of
from parallelrun_core.errors import InvalidInput
from parallelrun_core.intake.reading import read_job
from parallelrun_core.spec import JobSpec, PipelineSpec
from parallelrun_core.storage.path_rule import PathRule, Places

COMPONENT = {
    "$schema": "https://azuremlschemas.azureedge.net/latest/commandComponent.schema.json",
    "type": "command",
    "name": "count",
    "code": "./src",
    "command": "python main.py",
    "environment": "azureml:any@latest",
}


def step(**changes: object) -> dict[str, object]:
    return {"type": "command", "component": {**COMPONENT, **changes}}


@pytest.fixture
def work(tmp_path: Path) -> Path:
    return work_in(tmp_path)


def work_in(tmp_path: Path) -> Path:
    """A folder with code, and with what is to be beside it."""
    files = {
        "src/main.py": "main",
        "src/.amlignore": "*.tmp\n/lib/secret.py\n",
        "shared/lib/a.py": "a",
        "shared/lib/b.tmp": "b",
        "shared/lib/secret.py": "s",
        "shared/lib/.gitignore": "own.py\n",
        "shared/lib/own.py": "o",
        "shared/more.py": "more",
        "other/lib/c.py": "c",
        "other/lib/deep/d.py": "d",
    }
    for name, text in files.items():
        (tmp_path / "work" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "work" / name).write_text(text)
    return tmp_path / "work"


def files_of(source: CodeSource, rule: PathRule | None = None) -> dict[str, bytes]:
    return {"/".join(parts): file.read() for parts, _, file in source.files(rule=rule)}


def source(work: Path, *includes: str, code: str = "src") -> CodeSource:
    return source_of(str(work / code) if code else "", [str(work / each) for each in includes])


def test_code_with_includes_has_each_at_its_top_under_its_own_name(work: Path) -> None:
    files = files_of(source(work, "shared/more.py", "shared/lib", "other/lib"))
    assert set(files) == {
        ".amlignore", "main.py", "more.py", "lib/.gitignore", "lib/a.py", "lib/c.py", "lib/deep/d.py"
    }  # fmt: skip
    assert files["more.py"] == b"more"


def test_code_of_includes_alone_needs_no_folder(work: Path) -> None:
    assert set(files_of(source(work, "shared/more.py", "other", code=""))) == {
        "more.py", "other/lib/c.py", "other/lib/deep/d.py"
    }  # fmt: skip


@pytest.mark.parametrize("includes", [("shared/more.py", "shared/lib", "other/lib"), ("other/lib.zip",), ()])
def test_code_is_the_same_snapshot_by_its_folder_and_by_a_zip(
    work: Path, tmp_path: Path, includes: tuple[str, ...]
) -> None:
    code = source(work, *includes)
    with zip_sources({"": code}) as archive:
        assert snapshot_zip(archive, tmp_path / "sent") == snapshot_folder(code, tmp_path / "stored")


def test_an_include_that_ends_in_zip_is_a_zip_of_the_folder(work: Path, tmp_path: Path) -> None:
    snapshot = snapshot_folder(source(work, "shared/lib.zip"), tmp_path / "store")
    with zipfile.ZipFile(tmp_path / "store" / snapshot / "lib.zip") as archive:
        assert archive.namelist() == ["lib/", "lib/.gitignore", "lib/a.py"]
    (work / "shared" / "lib.zip").write_bytes(b"a file of that name is taken as it is")
    assert files_of(source(work, "shared/lib.zip"))["lib.zip"].startswith(b"a file")


@pytest.mark.parametrize(
    "includes, message",
    [
        (["other/main.py"], "'main.py' is in the folder of the code, too"),
        (["other/MAIN.py"], "'MAIN.py' is in the folder of the code, too"),
        (["shared/lib", "third/lib"], "'lib/a.py' is in an include before this one, too"),
        (["nowhere"], "there is no file or folder"),
        (["/"], "the root folder can't be put into the code"),
        (["outside"], "link to outside"),
    ],
)
def test_includes_that_collide_or_lead_elsewhere_are_refused_at_their_place(
    work: Path, includes: list[str], message: str
) -> None:
    for name in ("other/main.py", "other/MAIN.py", "third/lib/a.py", "outside/own.py"):
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_text("x")
    (work / "outside" / "link").symlink_to(work / "src")
    with pytest.raises(InvalidInput, match=message) as refused:
        files_of(source(work, *includes))
    assert refused.value.problems[0].pointer == f"/additional_includes/{len(includes) - 1}"


@pytest.mark.parametrize("include", ["other/lib", "other/lib/c.py", "link.py", "other/lib.zip"])
def test_an_include_that_may_not_be_read_is_refused_once_it_is_open(work: Path, tmp_path: Path, include: str) -> None:
    (work / "link.py").symlink_to(work / "other" / "lib" / "c.py")
    rule = PathRule(tmp_path / "root", Places(roots=[str(work / "src"), str(work / "shared")]))
    assert files_of(source(work, "shared/more.py", "shared/lib"), rule)
    with pytest.raises(InvalidInput, match="is outside of the folders that jobs may use") as refused:
        files_of(source(work, include), rule)
    assert refused.value.problems[0].pointer == "/additional_includes/0"


def test_a_folder_of_too_many_files_is_not_zipped(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_zipped_files(work, monkeypatch)


def check_zipped_files(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder that anybody has filled keeps nobody busy, whatever the files have in them."""
    monkeypatch.setattr("parallelrun_core.code.source.MOST_ZIPPED_FILES", 20)
    for number in range(30):
        (work / "shared" / "lib" / f"empty{number}.py").touch()
    with pytest.raises(InvalidInput, match="lib has more than 20 files") as refused:
        files_of(source(work, "shared/lib.zip"))
    assert refused.value.problems[0].pointer == "/additional_includes/0"


def test_a_component_names_its_includes_from_its_own_folder(work: Path) -> None:
    (work / "count.yml").write_text(
        "{type: command, command: python main.py, environment: 'azureml:any@latest', code: ./src, "
        "additional_includes: [./shared/more.py, other/lib]}"
    )
    reading = read_job({"type": "command", "component": "./work/count.yml"}, folder=work.parent)
    assert isinstance(reading.spec, JobSpec)
    assert reading.spec.additional_includes == (str(work / "shared/more.py"), str(work / "other/lib"))
    document, sources = without_its_code(reading.spec)
    assert (document["code"], document["additional_includes"]) == ("", [])
    assert "more.py" in files_of(sources[""])


def test_steps_with_other_includes_have_other_code_in_the_zip(work: Path) -> None:
    steps = {
        "a": step(additional_includes=["./shared/more.py"]),
        "b": step(),
        "c": step(additional_includes=["./shared/more.py"]),
        "d": step(code=None, additional_includes=["./other"]),
    }
    reading = read_job({"type": "pipeline", "jobs": steps}, folder=work)
    assert isinstance(reading.spec, PipelineSpec)
    document, sources = without_its_code(reading.spec)
    names = [document["steps"][name]["job"]["code"] for name in steps]
    assert names == ["src", "src-2", "src", "code"]
    with zip_sources(sources) as archive, zipfile.ZipFile(archive) as opened:
        assert {"src/more.py", "src/main.py", "src-2/main.py", "code/other/lib/c.py"} <= {*opened.namelist()}
        assert "src-2/more.py" not in opened.namelist()


def test_includes_of_stored_code_and_of_devops_are_refused(work: Path) -> None:
    stored = "azureml:code/" + "0" * 64
    with pytest.raises(InvalidInput, match="nothing can be put beside the files of code that is stored"):
        read_job(step(code=stored, additional_includes=["./shared"]), folder=work)
    with pytest.raises(InvalidInput, match="additional_includes/0: must be a string"):
        read_job(step(additional_includes=[{"type": "artifact", "feed": "f"}]), folder=work)
