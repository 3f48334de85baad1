"""The entry script's `sys.argv`: the user's own arguments with their expressions filled in, and the engine's.

The order is the reference's (§1.2): the engine's options, then the user's, then the names of the inputs. Where a user's
option has the name of one of the engine's, the user's comes later, and so wins.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from parallelrun_core.spec.expressions import compact, filled, same_name
from parallelrun_core.spec.fields import ValueInput

if TYPE_CHECKING:
    from parallelrun_core.spec.job import JobSpec

_QUOTED_OR_ESCAPED: Final = re.compile(
    r"""'[^']*' | "(?:[^"\\]|\\.)*" | (?P<blank>\\[ \t](?=\s*--)) | \\\r?\n | \\.""", re.DOTALL | re.VERBOSE
)


def split_arguments(text: str, value_of: Callable[[str, str], str]) -> list[str]:
    """`program_arguments`, split as a shell would, with the value of every `${{inputs.X}}` and `${{outputs.Y}}`.

    Args:
        value_of: from `inputs` or `outputs` and a name to the value. Raises ValueError if there is none.

    Raises:
        ValueError: a quote is left open, an option begins with an escaped blank, or an expression can't be resolved.
    """
    return [filled(word, value_of) for word in shlex.split(_QUOTED_OR_ESCAPED.sub(_continued, compact(text)))]


def _continued(found: re.Match[str]) -> str:
    """Without the line breaks after a backslash, which a shell drops and `shlex` keeps."""
    if found["blank"]:  # where YAML has folded the lines, too: nobody means an option with a blank before it
        raise ValueError(
            "a backslash before a blank makes the blank a part of the next word; "
            "leave the backslash out, or let it be the last character of its line"
        )
    return found[0] if found[0].startswith("'") else re.sub(r"\\\r?\n|(\\.)", r"\1", found[0], flags=re.DOTALL)


def user_arguments(spec: JobSpec, outputs: Mapping[str, str]) -> list[str]:
    """The `program_arguments` of the user, split, with the values of all expressions.

    Args:
        outputs: the path of each named output, which depends on the job's folder.

    Raises:
        ValueError: an expression can't be resolved.
    """

    def value_of(kind: str, name: str) -> str:
        named: Mapping[str, object] = spec.inputs if kind == "inputs" else spec.outputs
        key = same_name(name, named)
        if key is None:
            raise ValueError(f"${{{{{kind}.{name}}}}} is not one of the {kind} ({', '.join(named)})")
        if kind == "outputs":
            return outputs.get(key) or spec.outputs[key].path
        found = spec.inputs[key]
        return str(found.value) if isinstance(found, ValueInput) else found.path

    return split_arguments(spec.program_arguments, value_of)


def engine_arguments(spec: JobSpec, output: str = "") -> list[str]:
    """The options that the engine puts before the user's arguments.

    Args:
        output: the folder of the job's output; the option is left out when this is empty.
    """
    options: dict[str, object] = {
        "client_sdk_version": "parallelrun",
        "scoring_module_name": spec.entry_script,
        "mini_batch_size": spec.mini_batch_size if spec.mini_batch_size is not None else 0,
        "error_threshold": spec.error_threshold,
        "output_action": spec.output_action,
        "logging_level": spec.logging_level,
        "run_invocation_timeout": _number(spec.run_invocation_timeout),
        "run_max_try": spec.run_max_try,
        "create_snapshot_at_runtime": True,
    }
    if spec.mini_batch_error_threshold != -1:
        options["allowed_failed_count"] = spec.mini_batch_error_threshold
    if spec.allowed_failed_percent != 100:
        options["allowed_failed_percent"] = _number(spec.allowed_failed_percent)
    if spec.writes_rows:
        options["append_row_file_name"] = spec.append_row_file_name
    if output:
        options["output"] = output
    if spec.max_concurrency_per_instance is not None:
        options["process_count_per_node"] = spec.max_concurrency_per_instance
    if spec.partition_keys:
        options["partition_keys"] = json.dumps(list(spec.partition_keys))
    return [text for name, value in options.items() for text in (f"--{name}", str(value))]


def input_arguments(spec: JobSpec) -> list[str]:
    """The names of the inputs that are cut into mini-batches, after the user's arguments."""
    argv: list[str] = []
    counts = {"input_ds": 0, "input_fds": 0}
    for name, given in spec.data_inputs():
        option = "input_ds" if given.type == "mltable" or given.transformations else "input_fds"
        argv += [f"--{option}_{counts[option]}", name]
        counts[option] += 1
    return argv


def _number(value: float) -> int | float:
    return int(value) if value == int(value) else value
