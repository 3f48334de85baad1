"""Turns of a loop: a pipeline with a loop, as the pipeline of its turns. Pure, no I/O.

A turn is a step, made of the body. Those of `parallel_for` follow from its items. Of a `do_while`, there is one turn
more than were decided: it waits for the one before, whose output says whether it runs. So what was recorded about steps
says which turns there are, and a master that goes on in the middle of a loop finds the same ones.
"""

from __future__ import annotations

import json
import posixpath
from collections.abc import Mapping, Sequence
from typing import Any, Final

from parallelrun_core.errors import InvalidInput
from parallelrun_core.pipelines.records import StepRecord
from parallelrun_core.spec.fields import of_type
from parallelrun_core.spec.later_inputs import LaterInput, PipelineInput, StepInput, StepOutput
from parallelrun_core.spec.pipeline import MAX_TURNS, Condition, Loop, PipelineSpec, Step
from parallelrun_core.storage.location import is_url

_NOT_RUN: Final = ("skip", "fail")
MAX_NAME: Final = 128


def turn_name(number: int) -> str:
    """The name of a turn, the first of which is 1."""
    return f"turn-{number}"


def unrolled(spec: PipelineSpec, records: Mapping[str, Sequence[StepRecord]]) -> PipelineSpec:
    """The pipeline with its turns as steps; one without a loop is returned unchanged.

    Args:
        records: the decisions about each step, as `read_records` reads them.
    """
    loop = spec.loop
    if loop is None:
        return spec
    if loop.type == "parallel_for":
        steps = {name: _turn_of_item(spec, name, item) for name, item in loop.items.items()}
        outputs = {name: output.model_copy(update={"of": None}) for name, output in spec.outputs.items()}
    else:
        decided = _decided(records)
        steps = {turn_name(number): _turn_of_while(spec, loop, number) for number in _numbers(loop, decided)}
        ran = [number for number, record in enumerate(decided, 1) if record.action not in _NOT_RUN]
        last = turn_name(ran[-1] if ran else 1)
        outputs = {
            name: output.model_copy(update={"of": StepOutput(step=last, output=output.of.output)})
            if output.of is not None
            else output
            for name, output in spec.outputs.items()
        }
    return spec.model_copy(update={"loop": None, "steps": steps, "outputs": outputs})


def is_gathered(spec: PipelineSpec) -> bool:
    """Return whether each output of the pipeline is made of those of all turns."""
    return spec.loop is not None and spec.loop.type == "parallel_for"


def _decided(records: Mapping[str, Sequence[StepRecord]]) -> list[StepRecord]:
    """The last decision about each turn, in their order."""
    decided: list[StepRecord] = []
    while of_turn := records.get(turn_name(len(decided) + 1)):
        decided.append(of_turn[-1])
    return decided


def _numbers(loop: Loop, decided: Sequence[StepRecord]) -> range:
    goes_on = len(decided) < loop.max_turns and (not decided or decided[-1].action not in _NOT_RUN)
    return range(1, len(decided) + (2 if goes_on else 1))


def _turn_of_item(spec: PipelineSpec, name: str, item: Mapping[str, Any]) -> Step:
    (body,) = spec.steps.values()
    inputs: dict[str, Any] = dict(body.job.get("inputs", {}))
    sources = dict(body.inputs_from)
    for input_name, source in body.inputs_from.items():
        if isinstance(source, PipelineInput) and source.input not in spec.inputs:
            del sources[input_name]  # an optional one may be missing in the items
            if source.input in item:
                inputs[input_name] = _with_how(
                    source, item[source.input].model_dump(mode="json", exclude_defaults=True)
                )
    return _turn(spec, body, name, inputs, sources)


def _with_how(how: LaterInput, fields: dict[str, Any]) -> dict[str, Any]:
    """An input of an item, with the mode and type of the body's input where it has none itself."""
    if "value" in fields or how.literal:
        return fields
    return {**how.resolved(fields["path"]), **fields}


def _turn_of_while(spec: PipelineSpec, loop: Loop, number: int) -> Step:
    (body,) = spec.steps.values()
    sources: dict[str, StepInput | PipelineInput] = dict(body.inputs_from)
    before = turn_name(number - 1)
    for input_name, source in body.inputs_from.items():
        carried = loop.carried.get(source.input) if isinstance(source, PipelineInput) else None
        if carried is None:
            continue
        if number > 1:
            how = carried.model_dump(exclude={"output"})
            sources[input_name] = StepInput(step=before, output=carried.output, **how)
        elif isinstance(source, PipelineInput) and source.input not in spec.inputs:
            del sources[input_name]  # it is optional, and has no first value
    turn = _turn(spec, body, turn_name(number), body.job.get("inputs", {}), sources)
    if number == 1:
        return turn.model_copy(update={"turn": turn_name(1)})
    conditions = turn.conditions
    if loop.condition:
        conditions = (*conditions, Condition(of=StepOutput(step=before, output=loop.condition)))
    after = (*turn.after, before)
    return turn.model_copy(update={"after": after, "conditions": conditions, "turn": turn_name(number)})


def _turn(
    spec: PipelineSpec,
    body: Step,
    name: str,
    inputs: Mapping[str, Any],
    sources: Mapping[str, StepInput | PipelineInput],
) -> Step:
    """A turn, whose outputs are apart from those of the others."""
    outputs = {}
    for output_name, fields in (body.job.get("outputs") or {}).items():
        bound = body.outputs_to.get(output_name, "")
        path = fields.get("path") or (spec.outputs[bound].path if bound in spec.outputs else "")
        is_file = fields.get("type", "uri_folder") == "uri_file"
        outputs[output_name] = {**fields, "path": _path_of_turn(path, name, is_file=is_file)} if path else fields
    label = f"{body.job.get('name', 'body')[: MAX_NAME - len(name) - 1]} {name}"
    job = {**body.job, "name": label, "inputs": dict(inputs), "outputs": outputs}
    return body.model_copy(update={"job": job, "inputs_from": dict(sources)})


def _path_of_turn(path: str, turn: str, *, is_file: bool) -> str:
    """A path of a turn's own: a folder below that of all, or a file beside the others."""
    if not is_file:
        return f"{path.rstrip('/')}/{turn}"
    stem, suffix = posixpath.splitext(path)
    return f"{stem}.{turn}{suffix}"


# Items that a step has made


def with_items(spec: PipelineSpec) -> PipelineSpec:
    """The pipeline with its items, where an input has them; any other is returned unchanged.

    Raises:
        InvalidInput: what is in that input is not a list of items.
    """
    loop = spec.loop
    if loop is None or not loop.items_from:
        return spec
    (body,) = spec.steps.values()
    text = str(getattr(spec.inputs.get(loop.items_from), "value", ""))
    hows = {each.input: each for each in body.inputs_from.values() if isinstance(each, PipelineInput)}
    names = hows.keys() - spec.inputs.keys()
    items = {name: _checked(item, name, names, hows) for name, item in named_items(text).items()}
    fields = spec.model_dump(mode="json", exclude_unset=True)
    inputs = {name: entry for name, entry in fields.get("inputs", {}).items() if name != loop.items_from}
    return PipelineSpec.parse({**fields, "inputs": inputs, "loop": {"type": "parallel_for", "items": items}})


def named_items(items: object) -> dict[str, dict[str, Any]]:
    """The items of a `parallel_for` by the names of their turns.

    Args:
        items: a list of mappings of inputs, a mapping of such by name, or either as JSON.

    Raises:
        InvalidInput: it is something else.
    """
    if isinstance(items, str):
        try:
            items = json.loads(items)
        except ValueError as error:
            raise InvalidInput.at("", f"the items are no JSON: {error}", _FORM) from error
    if isinstance(items, list):
        items = {turn_name(number): item for number, item in enumerate(items, 1)}
    if not isinstance(items, dict) or not all(isinstance(item, dict) for item in items.values()):
        raise InvalidInput.at("", "the items must be a list of mappings, or a mapping of them by name", _FORM)
    if not items:
        raise InvalidInput.at("", "there are no items", _FORM)
    if len(items) > MAX_TURNS:
        raise InvalidInput.at("", f"there are {len(items):,} items, more than {MAX_TURNS:,}", "make them fewer")
    first = next(iter(items.values()))
    for name, item in items.items():
        if item.keys() != first.keys():
            message = f"the item {name!r} has {_quoted(item)}, and the first one has {_quoted(first)}"
            raise InvalidInput.at("", message, "all items have the same inputs")
    return {str(name): item for name, item in items.items()}


_FORM: Final = "as in [{size: 1}, {size: 2}], with names of the body's inputs"


def _quoted(names: Mapping[str, Any]) -> str:
    return ", ".join(map(str, names)) or "none"


def _checked(
    item: Mapping[str, Any], turn: str, names: frozenset[str] | set[str], hows: Mapping[str, LaterInput]
) -> dict[str, Any]:
    """An item that a step has made, as a job spec has its inputs.

    Raises:
        InvalidInput: it has another input than the body, or a value that isn't of its type.
    """
    inputs = {}
    for name, value in item.items():
        if name not in names:
            has = ", ".join(sorted(names)) or "none"
            raise InvalidInput.at(
                "", f"the item {turn!r} has {name!r}, which is no open input of the body", f"open: {has}"
            )
        how, path = hows[name], value
        if how.literal:
            try:
                inputs[name] = {"value": of_type(how.literal, value)}
            except (ValueError, OverflowError, TypeError) as error:
                message = f"{name!r} of the item {turn!r} is {str(value)[:80]!r}, and no {how.literal}"
                raise InvalidInput.at("", message) from error
            continue
        if isinstance(value, dict):
            path = value.get("path") or value.get("uri")
        if not isinstance(path, str) or not (path.startswith("/") or is_url(path) or path.startswith("azureml:")):
            message = f"{name!r} of the item {turn!r} is {str(value)[:80]!r}, and no absolute path"
            raise InvalidInput.at("", message, "an item that a step makes has absolute paths or URLs")
        kind = value.get("type") or value.get("job_input_type") if isinstance(value, dict) else None
        inputs[name] = {"path": path, **({"type": kind} if kind else {})}
    return inputs
