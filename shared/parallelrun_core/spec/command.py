"""A job with a shell command in place of an entry script: what follows for its other fields, and the shell's text.

Such a job is one mini-batch without data, for one worker, and returns no rows. So whoever schedules, leases, guards and
retries mini-batches needs to know nothing of commands.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from parallelrun_core.spec.expressions import filled, same_name, without_absent_parts
from parallelrun_core.spec.fields import Input, Output, ValueInput
from parallelrun_core.spec.problems import at
from parallelrun_core.spec.secrets import reference_to

if TYPE_CHECKING:
    from pydantic import BaseModel

MAX_SECONDS: Final = 259_200
SETTLED: Final[Mapping[str, Any]] = {
    "rank_mini_batch_count": 1,
    "output_action": "summary_only",
    "instance_count": 1,
    "max_concurrency_per_instance": 1,
    "mini_batch_error_threshold": 0,
}
"""Fields of a job spec that have this value with a command, and no other."""
DEFAULTS: Final[Mapping[str, Any]] = {
    "run_invocation_timeout": MAX_SECONDS,
    "run_max_try": 1,
}
"""Fields of a job spec whose default is this with a command."""
_OF_SCRIPTS: Final = (
    "program_arguments", "input_data", "mini_batch_size", "partition_keys", "append_row_file_name", "append_row_to",
    "append_row_separator", "append_row_dataframe_header", "append_row_safe_output", "error_threshold",
    "allowed_failed_percent", "speculative_execution", "look_ahead", "logging_level", "profiling_module", "resume_from",
)  # fmt: skip
"""Fields that mean nothing with a command."""
_TOKEN: Final = re.compile(r"\$\{\{.*?\}\}|\\.|['\"]|(?<![^\s;&|()])#[^\n]*", re.DOTALL)


def with_settings(document: Mapping[str, Any]) -> dict[str, Any]:
    """A job spec with a command, and what follows from that for the fields that it doesn't give."""
    given = {name: value for name, value in document.items() if value is not None or name not in SETTLED}
    return {**DEFAULTS, **SETTLED, **given}


def check_fields(spec: BaseModel) -> None:
    """Check that a job spec with a command has no fields that contradict it, or that only an entry script needs.

    Raises:
        PydanticCustomError: it has one.
    """
    for name, value in SETTLED.items():
        if getattr(spec, name) != value:
            raise at(name, f"must be {value!r}, or left out: a command runs once, by one worker, and returns no rows")
    for name in _OF_SCRIPTS:
        if _is_set(spec, name):
            raise at(name, "it is for an entry script and means nothing with a command; leave it out")


def _is_set(spec: BaseModel, name: str) -> bool:
    return bool(getattr(spec, name) != type(spec).model_fields[name].default)


def as_written(spec: BaseModel, fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a job spec with a command: without those that follow from it, and with those whose default is
    another one with a command, as defaults may have been left out."""
    left_out = (*SETTLED, "entry_script", *(name for name in _OF_SCRIPTS if not _is_set(spec, name)))
    own = {name: value for name, value in fields.items() if name not in left_out}
    return own | {name: getattr(spec, name) for name in DEFAULTS}


def shell_text(
    text: str, inputs: Mapping[str, Input | ValueInput], outputs: Mapping[str, Output], paths: Mapping[str, str],
    secrets: Mapping[str, object],
) -> str:  # fmt: skip
    """A command for a shell, without its `$[[…]]` parts for absent inputs, and with the values of all expressions.

    A literal is inserted as it is (reference §2.2), so it may be several words. A path stays one word, and is quoted if
    it must be. A secret is the environment variable of its name, so that its value is in no list of processes.

    Args:
        paths: of named outputs, which depend on the job's folder; one that is missing has its own.

    Raises:
        ValueError: an expression can't be resolved.
    """
    quote = ""

    def value_of(kind: str, name: str) -> str:
        if kind == "secrets":
            return _requoted(f'"${{{reference_to(name, secrets)}}}"', quote)
        named: Mapping[str, object] = inputs if kind == "inputs" else outputs
        key = same_name(name, named)
        if key is None:
            raise ValueError(f"${{{{{kind}.{name}}}}} is not one of the {kind} ({', '.join(named)})")
        if kind == "outputs":
            return _path(paths.get(key) or outputs[key].path, quote)
        given = inputs[key]
        return str(given.value) if isinstance(given, ValueInput) else _path(given.path, quote)

    text = without_absent_parts(text, inputs)
    done, at_ = [], 0
    while token := _TOKEN.search(text, at_):
        done.append(text[at_ : token.start()])
        word, at_ = token[0], token.end()
        if word[0] == "#" and quote:
            word, at_ = "#", token.start() + 1
        elif word[0] == "$":
            word = filled(word, value_of)
        elif word in ("'", '"', "\\'"):
            quote = _after(word, quote)
        done.append(word)
    return "".join([*done, text[at_:]])


def command_variables(inputs: Mapping[str, Input | ValueInput], paths: Mapping[str, str]) -> dict[str, str]:
    """The environment variables in which a command finds its inputs and outputs.

    Args:
        paths: of named outputs.
    """
    values = {name: str(given.value) if isinstance(given, ValueInput) else given.path for name, given in inputs.items()}
    return {f"AZURE_ML_INPUT_{name}": value for name, value in values.items()} | {
        f"AZURE_ML_OUTPUT_{name}": path for name, path in paths.items()
    }


def _after(word: str, quote: str) -> str:
    """Which quotes are open after this one. A backslash means nothing within single quotes."""
    if word == "\\'":
        return "" if quote == "'" else quote
    if quote:
        return "" if quote == word else quote
    return word


def _path(path: str, quote: str) -> str:
    quoted = shlex.quote(path)
    return path if quoted == path else _requoted(quoted, quote)


def _requoted(quoted: str, quote: str) -> str:
    """A quoted word where quotes are open: they are closed before it, and opened again."""
    return f"{quote}{quoted}{quote}"
