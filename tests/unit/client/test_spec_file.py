"""Job files: all problems are reported at once."""

from pathlib import Path

import pytest

from parallelrun.errors import InvalidInput
from parallelrun.job_file.reading import check_paths, input_assignments, read_job_file, read_spec

JOB = """
name: words
code: src
entry_script: count.py
inputs: data
mini_batch_size: 2
"""

_QUOTE = "write it without 0 in front, or quote a text"


@pytest.fixture
def job_file(tmp_path: Path) -> Path:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "count.py").write_text("def run(mini_batch):\n    return mini_batch\n")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "words").touch()
    (tmp_path / "job.yml").write_text(JOB)
    return tmp_path / "job.yml"


def test_paths_are_taken_from_the_folder_of_the_file(job_file: Path) -> None:
    spec = read_job_file(job_file).job

    assert spec.code == str(job_file.parent / "src")
    assert spec.data_paths() == [str(job_file.parent / "data")]
    check_paths(spec)


def test_a_path_may_be_given_wherever_a_job_file_has_a_text(job_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(job_file.parent)
    given = {"code": Path("src"), "entry_script": Path("count.py"), "inputs": {"data": {"path": Path("data")}}}

    spec = read_spec(given).job

    assert (spec.code, spec.entry_script) == (str(job_file.parent / "src"), "count.py")
    assert spec.data_paths() == [str(job_file.parent / "data")]
    assert given["code"] == Path("src")


def test_assignments_are_applied_in_order(job_file: Path) -> None:
    spec = read_job_file(job_file, ["mini_batch_size=5", "tags.team=x", "mini_batch_size=7"]).job

    assert (spec.mini_batch_size, spec.tags) == (7, {"team": "x"})


@pytest.mark.parametrize("line, pointer, words", [
    ("mini_batch_size: 010", "/mini_batch_size", "010 is read as the decimal number 10; " + _QUOTE),
    ("run_max_try: 003", "/run_max_try", "003 is read as the decimal number 3; " + _QUOTE),
    ("environment_variables: {ZIP: 010}", "/environment_variables/ZIP", "010 is a number, and the variable has"),
    ("environment_variables: {RATE: 1.50}", "/environment_variables/RATE", "the variable has it as '1.5'"),
    ("environment_variables: {SIZE: 1_000}", "/environment_variables/SIZE", "the variable has it as '1000'"),
])  # fmt: skip
def test_a_number_that_is_read_as_another_text_is_noted(job_file: Path, line: str, pointer: str, words: str) -> None:
    job_file.write_text(JOB.replace("mini_batch_size: 2", line))

    notes = [note for note in read_job_file(job_file).notes if note.pointer == pointer]

    assert [words in note.message for note in notes] == [True]


@pytest.mark.parametrize(
    "line", ["mini_batch_size: 10", 'environment_variables: {A: "010", B: 1.5, C: 10}', "run_max_try: 0x3"]
)
def test_a_number_that_is_read_as_it_is_written_has_no_note(job_file: Path, line: str) -> None:
    job_file.write_text(JOB.replace("mini_batch_size: 2", line))

    assert not any("decimal" in note.message or "variable" in note.message for note in read_job_file(job_file).notes)


def test_a_number_that_the_command_line_replaces_has_no_note(job_file: Path) -> None:
    job_file.write_text(JOB.replace("mini_batch_size: 2", "mini_batch_size: 010"))

    assert not read_job_file(job_file, ["mini_batch_size=7"]).notes


def test_every_wrong_field_is_named(job_file: Path) -> None:
    job_file.write_text(JOB.replace("mini_batch_size: 2", "mini_batch_sise: 2\nrun_max_try: 0"))

    with pytest.raises(InvalidInput) as caught:
        read_job_file(job_file)

    assert {problem.pointer for problem in caught.value.problems} == {"/mini_batch_sise", "/run_max_try"}


def test_everything_that_is_missing_is_named(job_file: Path) -> None:
    spec = read_job_file(
        job_file, ["inputs={data: data, more: nowhere}", "input_data=more", "entry_script=gone.py"]
    ).job

    with pytest.raises(InvalidInput) as caught:
        check_paths(spec)

    assert [problem.pointer for problem in caught.value.problems] == ["/inputs/more/path", "/entry_script"]


@pytest.mark.parametrize(
    "change, expected",
    [
        (("inputs: data", "inputs: dta"), "job.yml:5: /inputs: there is no file or folder .* .did you mean 'data'"),
        (("inputs: data", "inputs:\n  x: dta/a"), "job.yml:6: /inputs/x: there is no .*/dta/a' .did you mean 'data'"),
        (("inputs: data", "inputs:\n  x:\n    path: dta"), "job.yml:7: /inputs/x/path: there is no"),
        (("inputs: data", "inputs:\n  x: {type: uri_file}"), "job.yml:6: /inputs/x/path: this field is required"),
        (("code: src", "code: sc"), "job.yml:3: /code: there is no folder .* .did you mean 'src'"),
        (("count.py", "cuont.py"), "job.yml:4: /entry_script: "),
        (("name: words", "name: ''"), "job.yml:2: /name: "),
        (("entry_script: count.py", ""), "job.yml: /entry_script: this field is required"),
        (("name: words", "name: [words"), "job.yml: not readable as YAML or JSON: line 3"),
    ],
)
def test_problems_name_the_line_and_the_field_that_the_user_wrote(
    job_file: Path, change: tuple[str, str], expected: str
) -> None:
    job_file.write_text(JOB.replace(*change))

    with pytest.raises(InvalidInput, match=expected):
        check(job_file)


def test_problems_with_what_the_command_line_has_set_name_it(job_file: Path) -> None:
    with pytest.raises(InvalidInput, match="--set: /inputs: there is no"):
        check(job_file, "inputs=dta")
    with pytest.raises(InvalidInput, match="--set: /inputs/x/path: there is no"):
        check(job_file, "inputs={x: {path: dta}}")


def check(job_file: Path, *assignments: str) -> None:
    reading = read_job_file(job_file, assignments)
    with reading.locating_problems():
        check_paths(reading.job)


@pytest.mark.parametrize("assignment, pointer", [("code=''", "/code"), ("code=nowhere", "/code")])
def test_the_code_has_to_be_there(job_file: Path, assignment: str, pointer: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        check_paths(read_job_file(job_file, [assignment]).job)

    assert [problem.pointer for problem in caught.value.problems] == [pointer]


def test_a_pattern_is_there_when_something_matches(job_file: Path) -> None:
    (job_file.parent / "data" / "a.txt").touch()
    check_paths(read_job_file(job_file, ["inputs=data/*.txt"]).job)

    with pytest.raises(InvalidInput, match=r"no file matches .*\*.csv"):
        check_paths(read_job_file(job_file, ["inputs=data/*.csv"]).job)


def test_a_file_that_can_not_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"nowhere.yml: No such file"):
        read_job_file(tmp_path / "nowhere.yml")


def test_a_spec_may_be_a_path_a_mapping_or_an_object(job_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(job_file.parent)
    from_path = read_spec(str(job_file)).job
    mapping = {"entry_script": "count.py", "code": "src", "inputs": "data", "name": "words", "mini_batch_size": 2}

    assert read_spec(from_path).job == from_path
    assert read_spec(mapping).job.code == from_path.code


def test_places_of_inputs_are_relative_to_the_current_folder(job_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here := job_file.parent / "elsewhere").mkdir()
    monkeypatch.chdir(here)
    assert input_assignments(["new", "a=./b: c", "s3://bucket/x?a=b", "/x=y"]) == [
        f'inputs.data.path="{here}/new"', f'inputs.a.path="{here}/b: c"',
        'inputs.data.path="s3://bucket/x?a=b"', 'inputs.data.path="/x=y"',
    ]  # fmt: skip
    job_file.write_text(JOB.replace("inputs: data", "inputs: {data: {path: data}}"))
    assert read_job_file(job_file, input_assignments(["new"])).job.data_paths() == [f"{here}/new"]
    with pytest.raises(InvalidInput, match="has no place"):
        input_assignments(["a="])
