"""Options of the engine among the user's program arguments (reference §1.4).

The engine reads them as argparse does: `--x v` or `--x=v`. Of the abbreviations that argparse allows, only long ones
are taken for the engine's (the official samples write `--resource_monitor_interva`): `--rank` and `--progress` are
options that scripts have themselves. All stay in `sys.argv`, where scripts expect them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pydantic import BaseModel

from parallelrun_core.azure.findings import Findings
from parallelrun_core.spec.expressions import same_name
from parallelrun_core.spec.fields import MOST_USD
from parallelrun_core.spec.job import MOST_IN_FLIGHT
from parallelrun_core.spec.user_arguments import split_arguments

FILE_FORMAT: Final = "file_format"
"""No field of a job spec: the reading of the inputs that are cut."""
MIXED_TYPES: Final = "mixed_types"
"""Likewise."""
_MAX_SECONDS: Final = 259_200
_INT_MAX: Final = 2**31 - 1
_SHORTEST: Final = 4
"""Letters from which on an abbreviation gets a note: `--n` hardly means `--nice`."""
_FAMILY: Final = "amlbi_"
"""What names of options of Azure ML's newer engine begin with: scripts have none of their own."""
_PROMPT_FLOW_HINT: Final = "which takes the field `output` out of each row: run() returns that itself here"
_IN_FULL_ONLY: Final = (
    "resume_from", "rank_mini_batch_count", "in_flight", "mini_batches_in_flight", "rate_limits", "budget_usd",
    "mini_batch_format", "string_dtype", "on_failure", "fail_fast",
)  # fmt: skip
"""A job with one of these does something else than the same job without it."""


@dataclass(frozen=True, slots=True)
class Option:
    field: str
    """The field of the job spec; empty when the option sets none."""
    read: Callable[[str], Any]
    """Converts the text to the value, None: the option sets nothing; raises ValueError."""


def _integer(least: int, most: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        value = int(text) if re.fullmatch(r"[+-]?[0-9]{1,18}", text) else None
        if value is None or not least <= value <= most:
            raise ValueError(f"must be a whole number from {least} to {most:,}")
        return value

    return read


def _percent(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1
    if not 0 <= value <= 100:
        raise ValueError("must be a number from 0 to 100")
    return value


def _truth(text: str) -> bool:
    if text.lower() not in {"true", "false"}:
        raise ValueError("must be True or False")
    return text.lower() == "true"


def _streaming(text: str) -> str | None:
    return "streaming" if _truth(text) else None


def _rows(text: str) -> str:
    return f"rows:{_integer(1, _INT_MAX)(text)}"


def _prompt_flow(text: str) -> None:
    if _truth(text):
        raise ValueError(f"is not supported: Prompt Flow's own mode, {_PROMPT_FLOW_HINT}; must be False")


def _in_flight(text: str) -> int | str:
    return text if text == "auto" else _integer(1, MOST_IN_FLIGHT)(text)


def _budget(text: str) -> dict[str, float]:
    try:
        usd = float(text)
    except ValueError:
        usd = 0.0
    if not 0 < usd <= MOST_USD:
        raise ValueError("must be an amount of US dollars, more than 0")
    return {"usd": usd}


def _names(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(","))
    if not all(names):
        raise ValueError("must be a name, or several with commas between them")
    return names


def _one_of(*names: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text not in names:
            raise ValueError(f"must be {' or '.join(names)}")
        return text

    return read


OPTIONS: Final[dict[str, Option]] = {
    "error_threshold": Option("error_threshold", _integer(-1, _INT_MAX)),
    "allowed_failed_percent": Option("allowed_failed_percent", _percent),
    "allowed_failed_count": Option("mini_batch_error_threshold", _integer(-1, _INT_MAX)),
    "task_overhead_timeout": Option("task_overhead_timeout", _integer(1, _MAX_SECONDS)),
    "progress_update_timeout": Option("progress_update_timeout", _integer(1, _MAX_SECONDS)),
    "first_task_creation_timeout": Option("first_task_creation_timeout", _integer(1, _MAX_SECONDS)),
    "copy_logs_to_parent": Option("copy_logs_to_parent", _truth),
    "metrics_name_prefix": Option("metrics_name_prefix", str),
    "push_metrics_to_parent": Option("push_metrics_to_parent", _truth),
    "resource_monitor_interval": Option("resource_monitor_interval", _integer(0, _INT_MAX)),
    "profiling_module": Option("profiling_module", _one_of("cProfile", "profile")),
    "append_row_dataframe_header": Option("append_row_dataframe_header", _truth),
    "append_row_safe_output": Option("append_row_safe_output", _truth),
    "resume_from": Option("resume_from", str),
    "rank_mini_batch_count": Option("rank_mini_batch_count", _integer(0, 100_000_000)),
    "amlbi_async_mode": Option("in_flight", _streaming),
    "amlbi_mini_batch_rows": Option("mini_batch_size", _rows),
    "amlbi_file_format": Option(FILE_FORMAT, _one_of("jsonl")),
    "amlbi_dataframe_mixed_types": Option(MIXED_TYPES, _truth),
    "amlbi_pf_enabled": Option("", _prompt_flow),
    "mini_batches_in_flight": Option("mini_batches_in_flight", _in_flight),
    "in_flight": Option("in_flight", _one_of("async", "threads", "streaming")),
    "rate_limits": Option("rate_limits", _names),
    "budget_usd": Option("budget", _budget),
    "mini_batch_format": Option("mini_batch_format", _one_of("pandas", "arrow", "polars", "pandas_pyarrow")),
    "string_dtype": Option("string_dtype", _one_of("pandas", "object")),
    "on_failure": Option("on_failure", _one_of("isolate", "mini_batch")),
    "fail_fast": Option("fail_fast", _truth),
    "nice": Option("nice", _integer(-20, 19)),
}


def hints_of_options(text: str, *models: type[BaseModel]) -> dict[str, str]:
    """Return what to do about fields that a document has not, as they are among the arguments: by their names, and by
    those of the options.

    Args:
        text: says where they are, with `{}` for the name of the option.
        models: the parts of the document, whose own fields are none of these.
    """
    field_names = {name for model in models for name in model.model_fields}
    options = {name: option for name, option in OPTIONS.items() if not name.startswith(_FAMILY)}
    return {each: text.format(name) for name, option in options.items() for each in {name, option.field} - field_names}


def take_options(text: object, inputs: object, pointer: str, findings: Findings) -> dict[str, Any]:
    """The fields of a job spec, with `FILE_FORMAT` and `MIXED_TYPES`, that are set by the engine's options among the
    program arguments.

    An abbreviation is taken for an option from half of its name on, if the engine can read its value. One that is
    shorter, or has another value, is left to the script, with a note.

    Args:
        inputs: the inputs of the job; options may be bound to their values.
    """
    words = _words_of(text, inputs if isinstance(inputs, dict) else {})
    settings: dict[str, Any] = {}
    index = 0
    while index < len(words):
        word = words[index]
        index += 1
        if word == "--":
            break
        name, equals, value = word.removeprefix("--").partition("=")
        full = _full_name(name) if word.startswith("--") else ""
        if not full:
            if word.startswith(f"--{_FAMILY}"):
                _refuse(name, pointer, findings)
            continue
        if name != full and (full in _IN_FULL_ONLY or 2 * len(name) < len(full)):
            findings.note(pointer, f"--{name} is left to the script; to set the engine's --{full}, write it in full")
            continue
        if not equals:
            if index == len(words) or _is_option(words[index]):
                _complain(name, full, "must have a value", pointer, findings)
                continue
            value = words[index]
            index += 1
        option = OPTIONS[full]
        try:
            read = option.read(value)
        except ValueError as error:
            _complain(name, full, f"{error}, not {value!r}", pointer, findings)
            continue
        if name != full:
            findings.note(pointer, f"--{name} is read as --{full}, as Azure ML's engine does")
        if option.field and read is not None:
            settings[option.field] = read
    if settings.get("in_flight") == "streaming":  # the engine itself decides how many such a script gets
        settings.setdefault("mini_batches_in_flight", "auto")
    return settings


def _words_of(text: object, inputs: Mapping[str, Any]) -> list[str]:
    """Return the program arguments with the values of inputs in their places; none if they can't be split, which is
    reported for the arguments as a whole."""

    def value_of(kind: str, name: str) -> str:
        value = inputs.get(same_name(name, inputs) or "") if kind == "inputs" else None
        value = value.get("value") if isinstance(value, dict) else value
        return str(value) if isinstance(value, bool | int | float | str) else "/"

    try:
        return split_arguments(text, value_of) if isinstance(text, str) else []
    except ValueError:
        return []


def _refuse(name: str, pointer: str, findings: Findings) -> None:
    """Refuse an option of the engine's family that nothing here reads: without it, the job would do something else."""
    others = ", ".join(f"--{full}" for full in OPTIONS if full.startswith(_FAMILY))
    if name.startswith(f"{_FAMILY}pf_"):
        findings.wrong(pointer, f"--{name} is not supported: it is of Prompt Flow's own mode, {_PROMPT_FLOW_HINT}")
    else:
        findings.wrong(pointer, f"--{name} is not supported", f"of this family there are {others}")


def _complain(name: str, full: str, message: str, pointer: str, findings: Findings) -> None:
    if name == full:
        findings.wrong(pointer, f"--{full}: {message}")
    else:
        findings.note(pointer, f"--{name} is left to the script: as the engine's --{full}, it {message}")


def _full_name(name: str) -> str:
    """The one option with this name or prefix; empty when there is none."""
    if name in OPTIONS:
        return name
    matches = [full for full in OPTIONS if full.startswith(name)] if len(name) >= _SHORTEST else []
    return matches[0] if len(matches) == 1 else ""


def _is_option(word: str) -> bool:
    """Return whether a text is an option, as argparse decides it: a negative number is a value."""
    return word.startswith("-") and not re.fullmatch(r"-\d+|-\d*\.\d+|-", word)
