"""A shell command in a job spec: what follows from it for the other fields, and that the shell gets what was meant."""

from __future__ import annotations

import subprocess
from typing import Any

import pytest

from parallelrun_core.errors import InvalidInput
from parallelrun_core.folder.records import JobRecord
from parallelrun_core.spec import JobSpec
from parallelrun_core.spec.command import command_variables
from tests.twins.sabotage import always, expect_failure, replaced

HOSTILE = '/in/$(echo run>&2)/`echo run>&2`/${HOME} it\'s "a"\\ -f*\n;echo run>&2'
SHELLS = ("/bin/sh", "/bin/bash")


def problems(document: object) -> dict[str, str]:
    with pytest.raises(InvalidInput) as caught:
        JobSpec.parse(document)
    return {problem.pointer: str(problem) for problem in caught.value.problems}


def printed(command: str, **fields: Any) -> list[str]:
    """What a shell makes of a command that prints its words, one on each line."""
    return said(command, "/bin/sh", **fields).splitlines()


def said(command: str, shell: str, **fields: Any) -> str:
    """What a command prints."""
    spec = JobSpec.parse({"command": command, **fields})
    environment = {"PASSWORD": "p w$d", **command_variables(spec.inputs, {})}
    done = subprocess.run(
        [shell, "-c", spec.shell_command()], check=False, capture_output=True, text=True, env=environment
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_a_command_is_one_mini_batch_without_data_that_is_tried_once() -> None:
    spec = JobSpec.parse({"command": "true"})
    assert (spec.rank_mini_batch_count, spec.run_max_try, spec.mini_batch_error_threshold) == (1, 1, 0)
    assert (spec.instance_count, spec.max_concurrency_per_instance, spec.writes_rows) == (1, 1, False)
    assert spec.run_invocation_timeout == 259_200
    assert (spec.data_inputs(), spec.argv(), spec.code) == ([], [], "")


def test_timeouts_and_tries_of_a_command_can_be_set() -> None:
    spec = JobSpec.parse({"command": "true", "run_invocation_timeout": 5, "run_max_try": 3, "instance_count": None})
    assert (spec.run_invocation_timeout, spec.run_max_try, spec.instance_count) == (5, 3, 1)


def test_a_command_survives_the_job_folder() -> None:
    spec = JobSpec.parse({"command": "cat ${{inputs.rows}}", "inputs": {"rows": "/in/rows.csv"}})
    record = JobRecord(job_id="j", submitted=0.0, code="", spec=spec.model_dump(mode="json"))
    assert record.job_spec() == spec
    assert JobSpec.parse(spec.model_dump(mode="json", exclude_unset=True)) == spec


def test_what_a_command_sets_to_the_default_of_an_entry_script_is_not_left_out() -> None:
    spec = JobSpec.parse({"command": "true", "run_invocation_timeout": 60, "run_max_try": 3})
    assert JobSpec.parse(spec.model_dump(mode="json", exclude_defaults=True)) == spec


@pytest.mark.parametrize(
    "field, value, why",
    [
        ("entry_script", "score.py", "either entry_script or command"),
        ("instance_count", 2, "must be 1, or left out: a command runs once"),
        ("max_concurrency_per_instance", 4, "must be 1"),
        ("rank_mini_batch_count", 7, "must be 1"),
        ("mini_batch_error_threshold", -1, "must be 0"),
        ("output_action", "append_row", "must be 'summary_only'"),
        ("program_arguments", "--x 1", "means nothing with a command"),
        ("mini_batch_size", 5, "means nothing with a command"),
        ("partition_keys", ["a"], "means nothing with a command"),
        ("error_threshold", 5, "means nothing with a command"),
        ("speculative_execution", True, "summary_only"),
        ("resume_from", "other", "means nothing with a command"),
        ("command", "a\0b", "NUL"),
        ("command", "${{inputs.nothing}}", "not one of the inputs"),
        ("command", "${{outputs.nothing}}", "not one of the outputs"),
        ("command", "${{secrets.nothing}}", "not one of the secrets"),
        ("command", "${{parent.inputs.x}}", "neither"),
        ("run_invocation_timeout", 300_000, "less than or equal to 259200"),
    ],
)
def test_what_contradicts_a_command_is_refused_with_words(field: str, value: object, why: str) -> None:
    found = problems({"command": "true", field: value})
    assert list(found) == [f"/{field}"]
    assert why in found[f"/{field}"]


def test_without_a_command_an_entry_script_is_required() -> None:
    assert problems({"inputs": "/in", "command": ""}) == {
        "/entry_script": "/entry_script: this field is required (or `command`, a shell command)"
    }


def test_literals_are_words_of_the_command_as_they_are() -> None:
    given = {"options": {"value": "--a 1"}, "many": 5, "rate": 0.5, "wanted": True}
    command = "printf '%s\\n' ${{inputs.options}} '${{inputs.options}}' ${{inputs.many}}-${{ inputs.RATE }} "
    assert printed(command + "${{inputs.wanted}}", inputs=given) == ["--a", "1", "--a 1", "5-0.5", "True"]


@pytest.mark.parametrize(
    "path", ["/plain/path.csv", "/with a blank", "/it's", '/"quoted"', "/$HOME/`x`", "/back\\slash"]
)
def test_a_path_is_one_word_whatever_quotes_are_around_it(path: str) -> None:
    command = "printf '%s\\n' ${{inputs.data}} '${{inputs.data}}/a' \"${{inputs.data}}/b\" --x=${{inputs.data}}"
    wanted = [path, f"{path}/a", f"{path}/b", f"--x={path}"]
    assert printed(command, inputs={"data": {"path": path}}) == wanted


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(
    "command, wanted",
    [
        ("printf %s ${{inputs.x}}", "{}"),
        ('printf %s "a/${{inputs.x}}/b"', "a/{}/b"),
        ("printf %s --a='${{inputs.x}}'", "--a={}"),
        ("""bash -c 'printf %s "$1"' _ ${{inputs.x}}""", "{}"),
        ('printf %s "$(printf %s ${{inputs.x}})"', "{}"),
        ("""printf %s "$(printf %s "${{inputs.x}}" '${{inputs.x}}')" """, "{}{}"),
        ('printf %s "$(printf %s "$( (printf %s ${{inputs.x}}) )")" "${{inputs.x}}"', "{}{}"),
        ('x=`printf %s ${{inputs.x}}`; printf %s "$x" ${{inputs.x}}', "{}{}"),
        ('printf %s "`printf %s ${{inputs.x}}`" ${{inputs.x}}', "{}{}"),
        ("cat <<EOF >/dev/null\ndon't\nEOF\nprintf %s '${{inputs.x}}'", "{}"),
        ("cat <<-'E F' >/dev/null\n$(\n\tE F\nprintf %s ${{inputs.x}}", "{}"),
        ('y=${{inputs.x}}; printf %s "$(( 1 + (2) ))$y"', "3{}"),
        ('y=a"}"; printf %s "${y:-"}"}" "${{inputs.x}}"', 'a}}{}'),
        ("(exit 0); case a in a) printf %s ${{inputs.x}};; esac", "{}"),
        ("printf %s ${{inputs.quote}}${{inputs.x}}'", "{}"),
    ],
)  # fmt: skip
def test_a_path_is_never_run_wherever_it_stands(shell: str, command: str, wanted: str) -> None:
    given = {"x": HOSTILE, "quote": {"value": "'"}}
    assert said(command, shell, inputs=given) == wanted.format(*[HOSTILE] * 2)


def test_a_path_is_never_run_after_the_quotes_of_bash() -> None:
    command = r"printf %s $'a\'b' ${{inputs.x}} $'/${{inputs.x}}/' $" '"${{inputs.x}}"'
    assert said(command, "/bin/bash", inputs={"x": HOSTILE}) == f"a'b{HOSTILE}/{HOSTILE}/{HOSTILE}"


@pytest.mark.parametrize(
    "command, where",
    [
        ("cat <<EOF\n${{inputs.x}}\nEOF", "here-document"),
        ("python - <<'EOF'\nopen('${{inputs.x}}')\nEOF", "here-document"),
        ("echo $((1 ${{inputs.x}}))", "arithmetic"),
        ("((a = ${{inputs.x}}))", "arithmetic"),
        ("echo $[1${{inputs.x}}]", "[…]"),
        ("a[${{inputs.x}}]=1", "subscript"),
        ("echo ${a:${{inputs.x}}}", "within ${…}"),
        ("bash -c 'ls ${{inputs.x}}'", "after -c"),
        ("/usr/bin/python3.11 -c \"open('${{inputs.x}}')\"", "after -c"),
        ("eval ls ${{inputs.x}}", "eval"),
        ('echo "$(case a in a) ls ${{inputs.x}};; esac)"', "after `case`"),
        ("sh -ec \\\n -- 'ls ${{inputs.x}}'", "after -c"),
        ('"bash" -c ${{inputs.x}}', "after -c"),
        ("/usr/bin/ssh host ls ${{inputs.x}}", "after -c"),
        ("trap 'ls ${{inputs.x}}' EXIT", "after -c"),
        ("[[ 1${{inputs.x}} -eq 1 ]]", "after -c"),
        ("make IN=${{inputs.x}}", "after -c"),
    ],
)
def test_a_path_that_is_not_plain_is_refused_where_it_is_no_word(command: str, where: str) -> None:
    found = problems({"command": command, "inputs": {"x": "/in/$(id)/f"}})
    assert where in found["/command"]
    assert (
        where
        in problems({"command": command.replace("inputs", "outputs"), "outputs": {"x": {"path": "/a b"}}})["/command"]
    )
    assert "/in/f-1.csv" in JobSpec.parse({"command": command, "inputs": {"x": "/in/f-1.csv"}}).shell_command()


@pytest.mark.parametrize(
    "command",
    [
        "awk 'BEGIN { system(\"ls ${{inputs.x}}\") }'",
        "awk 'BEGIN { system(\"ls '${{inputs.x}}'\") }'",
        "awk 'BEGIN { system(\"ls '\"${{inputs.x}}\"'\") }'",
        "tool $'\\t${{inputs.x}}'",
        "echo 'ls ${{inputs.x}}' | sh",
        'run "a \\"${{inputs.x}}"',
    ],
)
def test_a_path_that_may_be_code_is_refused_in_a_text_that_may_be_a_program(command: str) -> None:
    for path in ("/in/$(id)", "/in/a;id", "/in/it's", '/in/"', "/in/a\nb"):
        found = problems({"command": command, "inputs": {"x": path}})
        assert "within a longer text in quotes" in found["/command"]
    for path in ("/in/a b", "/in/é~1"):
        assert "AZURE_ML_INPUT_x" in JobSpec.parse({"command": command, "inputs": {"x": path}}).shell_command()


def test_a_path_that_may_be_code_and_is_let_into_a_program_is_found() -> None:
    with replaced("parallelrun_core.spec.shell_words:_Words._is_part_of_text", always(False)), expect_failure():
        test_a_path_that_may_be_code_is_refused_in_a_text_that_may_be_a_program("awk '{ print \"${{inputs.x}}\" }'")


def test_expressions_in_a_literal_are_none() -> None:
    given = {"x": "/a b", "literal": {"value": "'${{inputs.x}}'"}}
    assert printed("echo ${{inputs.literal}} ${{inputs.x}}", inputs=given) == ["${{inputs.x}} /a b"]


def test_quotes_in_comments_and_after_backslashes_open_nothing() -> None:
    command = "# don't\nprintf '%s\\n' a#'b' \\' '\\' ${{inputs.data}} \"\\\"\" ${{inputs.data}}"
    assert printed(command, inputs={"data": {"path": "/a b"}}) == ["a#b", "'", "\\", "/a b", '"', "/a b"]


def test_an_output_is_where_the_job_puts_it() -> None:
    spec = JobSpec.parse({"command": "touch ${{outputs.model}}/m", "outputs": {"model": {}}})
    assert spec.shell_command({"model": "/jobs/j/outputs/model"}) == "touch /jobs/j/outputs/model/m"


def test_parts_for_inputs_that_are_not_given_are_left_out() -> None:
    command = "printf '%s\\n' a $[[--limit ${{inputs.limit}}]] $[[--more ${{inputs.more}}]]"
    assert printed(command, inputs={"limit": 5}) == ["a", "--limit", "5"]


@pytest.mark.parametrize("shell", SHELLS)
def test_a_value_in_its_variable_is_one_word_and_runs_nothing(shell: str) -> None:
    """As docs/job-spec.md advises for values that others give; in the text it is what Azure ML makes of it."""
    inputs = {"rate": {"value": HOSTILE}}

    assert said('printf "<%s>" "$AZURE_ML_INPUT_rate"', shell, inputs=inputs) == f"<{HOSTILE}>"


def test_a_secret_is_a_variable_and_its_value_in_no_command() -> None:
    given = {"PASSWORD": {"env": "PASSWORD"}}
    command = "printf '%s\\n' ${{secrets.password}} \"${{secrets.PASSWORD}}.\" '${{secrets.PASSWORD}}'"
    assert printed(command, secrets=given) == ["p w$d", "p w$d.", "p w$d"]
