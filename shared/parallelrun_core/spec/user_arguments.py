"""`program_arguments`, split into words with their expressions filled in: the user's part of `sys.argv`."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping
from typing import Final

from parallelrun_core.spec.expressions import compact, filled, name_of_target
from parallelrun_core.spec.fields import Input, Output, ValueInput

_QUOTED_OR_ESCAPED: Final = re.compile(
    r"""'[^']*' | "(?:[^"\\]|\\.)*" | (?P<blank>\\[ \t](?=\s*--)) | \\\r?\n | \\.""", re.DOTALL | re.VERBOSE
)


def split_arguments(text: str, value_of: Callable[[str, str], str]) -> list[str]:
    """`program_arguments`, split as a shell would, with the values of all expressions.

    Args:
        value_of: from `inputs`, `outputs` or `secrets` and a name to the value. Raises ValueError if there is none.

    Raises:
        ValueError: a quote is left open, an option begins with an escaped blank, or an expression can't be resolved.
    """
    return [filled(word, value_of) for word in shlex.split(_QUOTED_OR_ESCAPED.sub(_continued, compact(text)))]


def _continued(part: re.Match[str]) -> str:
    """Without the line breaks after a backslash, which a shell drops and `shlex` keeps."""
    if part["blank"]:  # where YAML has folded the lines, too: nobody means an option with a blank before it
        raise ValueError(
            "a backslash before a blank makes the blank a part of the next word; "
            "leave the backslash out, or let it be the last character of its line"
        )
    return part[0] if part[0].startswith("'") else re.sub(r"\\\r?\n|(\\.)", r"\1", part[0], flags=re.DOTALL)


def user_arguments(
    text: str,
    inputs: Mapping[str, Input | ValueInput],
    outputs: Mapping[str, Output],
    paths: Mapping[str, str],
    value_of_secret: Callable[[str], str],
) -> list[str]:
    """The `program_arguments` of the user, split, with the values of all expressions.

    Args:
        paths: of named outputs, which depend on the job's folder; one that is missing has its own.
        value_of_secret: by its name. Raises ValueError if there is none.

    Raises:
        ValueError: an expression can't be resolved.
    """

    def value_of(kind: str, name: str) -> str:
        if kind == "secrets":
            return value_of_secret(name)
        named: Mapping[str, object] = inputs if kind == "inputs" else outputs
        key = name_of_target(kind, name, named)
        if kind == "outputs":
            return paths.get(key) or outputs[key].path
        job_input = inputs[key]
        return str(job_input.value) if isinstance(job_input, ValueInput) else job_input.path

    return split_arguments(text, value_of)
