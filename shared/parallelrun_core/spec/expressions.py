"""The expressions of documents, which refer to inputs and outputs by name (reference §2.2).

    ${{inputs.NAME}}, ${{outputs.NAME}}                 the step's own
    ${{secrets.NAME}}                                   one of a job's secrets, whose value only the nodes have
    ${{parent.inputs.NAME}}, ${{parent.outputs.NAME}}   those of its pipeline
    ${{parent.jobs.STEP.outputs.NAME}}                  that of another step; `parent.` may be left out
    $[[ … ${{inputs.NAME}} … ]]                         a part that is left out when that input is not given

Spaces inside the braces don't count, nor does letter case.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple, TypeGuard

UNIQUE_NAME: Final = "__parallelrun_job_id__"
"""In the texts of a spec, what `${{name}}` becomes: the id of the job, once it has one."""
_EXPRESSION: Final = re.compile(r"\$\{\{(.{0,999}?)\}\}", re.DOTALL)
"""Its bound makes a text of many opening braces without an end take linear time."""
_REFERENCE: Final = re.compile(r"(parent\.)?(inputs|outputs|secrets)\.([A-Za-z_][A-Za-z0-9_]*)", re.IGNORECASE)
_STEP: Final = re.compile(
    r"(?:parent\.)?jobs\.([A-Za-z0-9_][A-Za-z0-9_-]*)(?:\.outputs\.([A-Za-z_][A-Za-z0-9_]*))?", re.IGNORECASE
)
_OPTIONAL: Final = re.compile(r"\$\[\[(.{0,3999}?)\]\]", re.DOTALL)


class ExpressionReference(NamedTuple):
    """The target of an expression."""

    of_parent: bool
    kind: str
    """`inputs`, `outputs` or `secrets`."""
    name: str


class StepReference(NamedTuple):
    """A step of the same pipeline, and one of its outputs."""

    step: str
    output: str
    """Empty: the step itself, as the block of a condition names it."""


def is_expression(value: object) -> TypeGuard[str]:
    """Return whether a text has an expression in it."""
    return isinstance(value, str) and _EXPRESSION.search(value) is not None


def only_expression(value: object) -> str | None:
    """Return what is between the braces, without spaces, when a text is one expression and nothing else."""
    match = _EXPRESSION.fullmatch(value.strip()) if isinstance(value, str) else None
    return _without_spaces(match[1]) if match else None


def reference(expression: str) -> ExpressionReference | None:
    """Return what an expression refers to, given what is between its braces; None when that is something else."""
    match = _REFERENCE.fullmatch(_without_spaces(expression))
    return ExpressionReference(match[1] is not None, match[2].lower(), match[3]) if match else None


def step_reference(expression: str) -> StepReference | None:
    """The step that an expression refers to, given what is between its braces; None when that is something else."""
    match = _STEP.fullmatch(_without_spaces(expression))
    return StepReference(match[1], match[2] or "") if match else None


def bound_name(text: str, kind: str) -> str:
    """NAME, when the text is `${{<kind>.NAME}}`; otherwise the text."""
    target = reference(only_expression(text) or "")
    return target.name if target and not target.of_parent and target.kind == kind else text


def compact(text: str) -> str:
    """Return a text without spaces inside its expressions, so that a shell's rules don't split them."""
    return _EXPRESSION.sub(lambda match: "${{" + _without_spaces(match[1]) + "}}", text)


def filled(text: str, value_of: Callable[[str, str], str]) -> str:
    """The text with the value of every expression in its place.

    Args:
        value_of: from `inputs`, `outputs` or `secrets` and a name to the value. Raises ValueError if there is none.

    Raises:
        ValueError: an expression can't be resolved.
    """

    return _EXPRESSION.sub(lambda match: value_of(*own_reference(match[1])), text)


def own_reference(expression: str) -> tuple[str, str]:
    """The kind and the name of what an expression refers to that is a job's own, given what is between its braces.

    Raises:
        ValueError: it is something else.
    """
    target = reference(expression)
    if target is None or target.of_parent:
        names = "${{inputs.NAME}} nor ${{outputs.NAME}} nor ${{secrets.NAME}}"
        raise ValueError(f"${{{{{expression}}}}} is neither {names}")
    return target.kind, target.name


def with_literals(text: str, literals: Mapping[str, str], dollar: str) -> str:
    """The text with the inputs in it that are literals; other expressions stay.

    Args:
        literals: their texts.
        dollar: what stands before the braces of expressions that are in the literals, which are none.
    """

    def fill(match: re.Match[str]) -> str:
        target = reference(match[1])
        key = same_name(target.name, literals) if target and target.kind == "inputs" and not target.of_parent else None
        return match[0] if key is None else literals[key].replace("${{", dollar + "{{")

    return _EXPRESSION.sub(fill, text)


def with_renamed_outputs(text: str, names: Mapping[str, str]) -> str:
    """The text with other names of outputs in its expressions.

    Args:
        names: the new ones, by the old ones.
    """

    def rename(match: re.Match[str]) -> str:
        target = reference(match[1])
        key = same_name(target.name, names) if target and target.kind == "outputs" and not target.of_parent else None
        return match[0] if key is None else f"${{{{outputs.{names[key]}}}}}"

    return _EXPRESSION.sub(rename, text)


def without_absent_parts(text: str, values: Mapping[str, object]) -> str:
    """The text without each `$[[…]]` part that refers to an input which is not given."""

    def part(match: re.Match[str]) -> str:
        targets = map(reference, _EXPRESSION.findall(match[1]))
        names = [each.name for each in targets if each and not each.of_parent and each.kind == "inputs"]
        return match[1] if all(same_name(name, values) is not None for name in names) else ""

    return _OPTIONAL.sub(part, text)


def same_name(name: str, named: Mapping[str, object]) -> str | None:
    """The key that is this name but for letter case, or None."""
    return name if name in named else next((key for key in named if str(key).lower() == name.lower()), None)


def name_of_target(kind: str, name: str, named: Mapping[str, object]) -> str:
    """The key of the input, output or secret that an expression refers to.

    Raises:
        ValueError: there is none; with those that there are.
    """
    key = same_name(name, named)
    if key is None:
        raise ValueError(f"${{{{{kind}.{name}}}}} is not one of the {kind} ({', '.join(named) or 'there is none'})")
    return key


def _without_spaces(text: str) -> str:
    return "".join(text.split())
