"""Steps of type `parallel_for` and `do_while`: they run nothing, but say how often another step, their body, runs.

each:
  type: parallel_for
  body: ${{parent.jobs.STEP}}
  items: [{size: 1}, {size: 2}]                   # or ${{parent.inputs.NAME}}, or an output of a step
  max_concurrency: 2
until:
  type: do_while
  body: ${{parent.jobs.STEP}}
  condition: NAME                                 # an output of the body
  mapping: {NAME: INPUT}                          # outputs of the body, and its inputs in the next turn
  limits: {max_iteration_count: 10}

The body is read as any other step, but for the inputs that change by turns: they are bound to inputs which are not
known yet. It becomes the only step of a pipeline, which is the step that the loop is.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Annotated, Any, Final, Literal

from pydantic import Field, StrictInt

from parallelrun_core.azure import bindings
from parallelrun_core.azure.findings import DocumentLocation, Findings, as_mapping, quoted
from parallelrun_core.azure.part import DocumentPart
from parallelrun_core.azure.pipelines.draft import PipelineDraft, StepDraft
from parallelrun_core.azure.pipelines.wiring import DO_WHILE, LOOPS, PARALLEL_FOR, RUN_NOTHING, RawStep
from parallelrun_core.azure.scope import LATER, Fields, Later, PipelineScope
from parallelrun_core.azure.v2_models import LITERAL_TYPES, GivenInput, Label
from parallelrun_core.azure.v2_reader import label
from parallelrun_core.errors import InvalidInput
from parallelrun_core.pipelines.turns import named_items
from parallelrun_core.spec.expressions import is_expression, only_expression, same_name, step_reference
from parallelrun_core.spec.fields import Input
from parallelrun_core.spec.later_inputs import LATER_FIELDS, LaterInput, PipelineInput, StepInput
from parallelrun_core.spec.loop import MAX_TURNS
from parallelrun_core.spec.pipeline import Step

_TURN: Final = "__turn_"
"""What names of inputs begin with, here, that change by turns."""
_ITEMS: Final = "__items"
_FILES: Final = ("string", "uri_file")
_CONDITIONS: Final = ("boolean", "uri_file", "string")
ReadOne = Callable[[RawStep, PipelineScope, Findings], tuple[StepDraft, Step]]


class _LoopNode(DocumentPart):
    type: str
    body: Any
    display_name: Label = None
    description: Label = None
    properties: dict[str, Any] | None = None
    comment: Label = None
    after: Any = None


class ParallelFor(_LoopNode):
    """The fields of a `parallel_for`."""

    items: Any
    max_concurrency: Annotated[StrictInt, Field(ge=1)] | None = None
    outputs: dict[str, Any] | None = None


class LoopLimits(DocumentPart):
    """The limits of a `do_while`."""

    max_iteration_count: Annotated[StrictInt, Field(ge=1, le=MAX_TURNS)] = MAX_TURNS
    type: Literal["do_while"] | None = None


class DoWhile(_LoopNode):
    """The fields of a `do_while`."""

    condition: str | None = None
    mapping: dict[str, Any] = Field(default_factory=dict)
    limits: LoopLimits = Field(default_factory=LoopLimits)


@dataclass(frozen=True, slots=True)
class RawLoop:
    """A loop as it was written, with its body."""

    step: RawStep
    body: RawStep
    node: ParallelFor | DoWhile

    @property
    def names_body(self) -> bool:
        """Return whether others name the body where they mean the outputs of the last turn."""
        return isinstance(self.node, DoWhile)

    def at(self, *names: str) -> str:
        """Return where a field of the loop is in the document."""
        return self.step.location.at(*names)

    @property
    def inputs(self) -> dict[str, Any]:
        """The inputs that the body was given."""
        inputs = self.body.fields.get("inputs")
        return inputs if isinstance(inputs, dict) else {}

    def declared(self) -> dict[str, GivenInput]:
        """The inputs that the body declares: by its component, or with a type in the place of a value."""
        ignored = Findings()  # what is wrong there is told when the body is read
        if self.body.component_at is not None:
            raw = as_mapping(self.body.component.get("inputs"), "", ignored)
        else:
            raw = {
                name: entry
                for name, entry in self.inputs.items()
                if isinstance(entry, dict) and "type" in entry and not {"path", "value"} & entry.keys()
            }
        return bindings.declarations(raw, self.body.location.below("inputs"), ignored)


def without_bodies(steps: Mapping[str, RawStep], findings: Findings) -> tuple[dict[str, RawStep], dict[str, RawLoop]]:
    """The steps without the bodies of loops, and the loops by their names."""
    loops: dict[str, RawLoop] = {}
    for step in steps.values():
        if step.kind not in LOOPS:
            continue
        model: type[ParallelFor | DoWhile] = ParallelFor if step.kind == PARALLEL_FOR else DoWhile
        node = findings.validate(model, {**step.fields, "type": step.kind}, step.location.pointer)
        body = _body(node.body, steps, step, findings) if node is not None else None
        if node is None or body is None:
            continue
        other = next((name for name, loop in loops.items() if loop.body is body), None)
        if other is not None:
            message = f"{body.name!r} is the body of {other!r} already"
            findings.wrong(step.location.at("body"), message, "write the step once for each loop")
            continue
        loops[step.name] = RawLoop(step, body, node)
    bodies = {loop.body.name for loop in loops.values()}
    return {name: step for name, step in steps.items() if name not in bodies}, loops


def _body(named: Any, steps: Mapping[str, RawStep], step: RawStep, findings: Findings) -> RawStep | None:
    target = step_reference(only_expression(named) or f"jobs.{named}")
    key = same_name(target.step, steps) if target is not None and not target.output else None
    if key is None or key == step.name:
        hint = f"as in ${{{{parent.jobs.NAME}}}}; the steps are: {quoted(name for name in steps if name != step.name)}"
        findings.wrong(step.location.at("body"), f"{named!r} is not another step", hint)
        return None
    if steps[key].kind in RUN_NOTHING:
        message = f"{key!r} is of type {steps[key].kind}, and can't be a body itself"
        findings.wrong(step.location.at("body"), message, "put it into a step of type pipeline, and name that")
        return None
    return steps[key]


def types_of_loop(loop: RawLoop, types: Mapping[str, str]) -> dict[str, str]:
    """The type of each output of a loop.

    Args:
        types: those of its body.
    """
    if isinstance(loop.node, DoWhile):
        return dict(types)
    return {name: "string" if kind in LITERAL_TYPES else "mltable" for name, kind in types.items()}


def with_names_of_loops(steps: Mapping[str, Step], loops: Mapping[str, RawLoop]) -> dict[str, Step]:
    """The steps, with the names of loops where those of their bodies were written."""
    names = {loop.body.name: name for name, loop in loops.items() if loop.names_body}
    if not names:
        return dict(steps)

    def renamed(part: Any) -> Any:
        is_bound = getattr(part, "step", None) in names
        return part.model_copy(update={"step": names[part.step]}) if is_bound else part

    changed = {}
    for name, step in steps.items():
        update = {
            "inputs_from": {key: renamed(source) for key, source in step.inputs_from.items()},
            "after": tuple(names.get(each, each) for each in step.after),
            "conditions": tuple(each.model_copy(update={"of": renamed(each.of)}) for each in step.conditions),
        }
        changed[name] = step.model_copy(update=update)
    return changed


# One loop


@dataclass
class _Turns:
    """Inputs of a body that change by turns, and the fields of the loop that say how."""

    open: dict[str, str]
    """Names of the body's inputs that change, each with its type."""
    loop: dict[str, Any]
    inputs: dict[str, Fields]
    """Inputs of the loop's pipeline."""
    sources: dict[str, StepInput | PipelineInput]
    """Inputs of the loop's pipeline that other steps make."""


def read_loop(loop: RawLoop, scope: PipelineScope, read_one: ReadOne) -> tuple[StepDraft, Step]:
    """The step that a loop is.

    Args:
        scope: of its pipeline, with the findings of this step alone.
        read_one: reads the body.

    Raises:
        InvalidInput: with one problem for each wrong field.
    """
    findings = scope.findings
    turns = (
        _turns_of_items(loop, loop.node, scope)
        if isinstance(loop.node, ParallelFor)
        else _turns_of_while(loop, loop.node, scope)
    )
    findings.check()
    stand_ins = {
        f"{_TURN}{name}": bindings.later_fields(Later("", f"{_TURN}{name}"), kind) for name, kind in turns.open.items()
    }
    body = replace(loop.body, fields={**loop.body.fields, "inputs": _bound_to_turns(loop.inputs, turns.open)})
    draft, step = read_one(body, replace(scope, inputs={**scope.inputs, **stand_ins}), findings)
    if step.type != "pipeline":
        scope.budget.take_text(step.job, loop.body.location.pointer)
    outputs, outputs_to = _outputs(loop, step, scope)
    findings.check()
    sources = {name: source for name, source in step.inputs_from.items() if not _is_of_turn(source)}
    body_sources = {
        name: PipelineInput(input=name, **_how(source)) if name in sources else _of_turn(source)
        for name, source in step.inputs_from.items()
    }
    for name, carried in turns.loop.get("carried", {}).items():
        source = next((each for each in body_sources.values() if each.input == name), None)
        turns.loop["carried"][name] = {**carried, **(_how(source) if source is not None else {})}
    inside = step.model_copy(update={"inputs_from": body_sources, "outputs_to": {name: name for name in outputs}})
    job = {
        "type": "pipeline",
        "name": label(loop.node.display_name or f"{scope.job_name}-{loop.step.name}"),
        "inputs": turns.inputs,
        "outputs": outputs,
        "steps": {loop.body.name: inside.model_dump(mode="json", exclude_defaults=True)},
        "loop": turns.loop,
        "max_concurrency": min(getattr(loop.node, "max_concurrency", None) or 0, MAX_TURNS),
    }
    inner = PipelineDraft(job, {}, loop.step.location.pointer, {loop.body.name: draft})
    spec = inner.finish(findings)
    fields = {"type": "pipeline", **spec.model_dump(mode="json", exclude_defaults=True)}
    read = step.model_copy(
        update={
            "type": "pipeline",
            "job": fields,
            "inputs_from": {**sources, **turns.sources},
            "outputs_to": outputs_to,
        }
    )
    return StepDraft(inner, spec), read


def _bound_to_turns(inputs: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """The inputs of a body, of which those with these names are bound to inputs that change by turns."""
    bound = dict(inputs)
    for name in names:
        key = same_name(name, bound) or name
        entry = bound.get(key)
        expression = f"${{{{parent.inputs.{_TURN}{name}}}}}"
        if isinstance(entry, dict):
            fields = {field: entry[field] for field in entry if field not in ("path", "value", "default")}
            bound[key] = {**fields, "path": expression}
        else:
            bound[key] = expression
    return bound


def _is_of_turn(source: StepInput | PipelineInput) -> bool:
    return isinstance(source, PipelineInput) and source.input.startswith(_TURN)


def _of_turn(source: StepInput | PipelineInput) -> PipelineInput:
    return PipelineInput(input=getattr(source, "input", "").removeprefix(_TURN), **_how(source))


def _how(source: LaterInput) -> dict[str, Any]:
    return {key: getattr(source, key) for key in LATER_FIELDS}


def _outputs(loop: RawLoop, step: Step, scope: PipelineScope) -> tuple[dict[str, Fields], dict[str, str]]:
    """The outputs of the pipeline of a loop, and those of the pipeline around it which they are."""
    body_outputs: dict[str, Any] = step.job.get("outputs") or {}
    of = {name: {"of": {"step": loop.body.name, "output": name}} for name in body_outputs}
    if isinstance(loop.node, DoWhile):
        types = {name: fields.get("type", "uri_folder") for name, fields in body_outputs.items()}
        return {name: {"type": types[name], **of[name]} for name in body_outputs}, dict(step.outputs_to)
    for name in step.outputs_to:
        message = f"each turn would write the pipeline's output {step.outputs_to[name]!r}"
        hint = f"bind the output {name!r} of {loop.step.name!r} to it, which has those of all turns"
        scope.findings.wrong(loop.body.location.at("outputs", name), message, hint)
    kinds = (scope.steps or {})[loop.step.name]
    own_scope = replace(scope, outputs_to={})
    raw = as_mapping(loop.node.outputs, loop.at("outputs"), scope.findings)
    declared = {name: {"type": kinds.get(name, "mltable")} for name in body_outputs}
    fields = bindings.step_outputs(raw, declared, own_scope, loop.step.location.below("outputs"))
    for name in fields:
        if fields[name].pop("asset", None):
            scope.findings.note(loop.at("outputs", name), "the outputs of several turns don't become an asset")
    return {name: {**fields[name], **of[name]} for name in fields}, own_scope.outputs_to


# parallel_for


def _turns_of_items(loop: RawLoop, node: ParallelFor, scope: PipelineScope) -> _Turns:
    raw, source = node.items, None
    pointer = loop.at("items")
    if is_expression(raw):
        raw, source = _bound_items(loop, raw, scope)
        if raw is None and source is None:
            return _Turns({}, {}, {}, {})
    if source is not None:
        names: dict[str, str] = {
            name: entry.type or "string" for name, entry in loop.declared().items() if _is_open(name, loop)
        }
        if not names:
            hint = "declare those that come from the items with a type, and give them no value"
            scope.findings.wrong(pointer, f"all inputs of {loop.body.name!r} have values already", hint)
        return _Turns(names, {"type": PARALLEL_FOR, "items_from": _ITEMS}, {}, {_ITEMS: source})
    try:
        items = named_items(raw)
    except InvalidInput as error:
        for problem in error.problems:
            scope.findings.wrong(pointer, problem.message, problem.hint)
        return _Turns({}, {}, {}, {})
    at_items, is_list = loop.step.location.below("items"), isinstance(raw, list)
    read = {
        name: _item(item, loop, scope, at_items.below(number if is_list else name))
        for number, (name, item) in enumerate(items.items())
    }
    scope.findings.check()
    first = next(iter(read.values()))
    declared = loop.declared()
    kinds = {name: _kind(fields, declared.get(name)) for name, fields in first.items()}
    return _Turns(kinds, {"type": PARALLEL_FOR, "items": read}, {}, {})


def _is_open(name: str, loop: RawLoop) -> bool:
    """Return whether the body has no value yet for an input that it declares."""
    key = same_name(name, loop.inputs)
    entry = loop.inputs[key] if key is not None else None
    return entry is None or (isinstance(entry, dict) and not {"path", "value", "default"} & entry.keys())


def _bound_items(loop: RawLoop, items: str, scope: PipelineScope) -> tuple[Any, StepInput | PipelineInput | None]:
    """The items that an expression stands for, or where they will come from; neither, with a problem."""
    pointer = loop.at("items")
    if step_reference(only_expression(items) or ""):
        later = bindings.step_output(items, scope.steps or {}, pointer, scope.findings)
        if later is None:
            return None, None
        kind = (scope.steps or {})[later.step][later.name]
        if kind not in _FILES:
            hint = "type: string, or uri_file: a file with a list as JSON"
            scope.findings.wrong(pointer, f"{items!r} is of type {kind}, in which no items can be", hint)
            return None, None
        return None, StepInput(step=later.step, output=later.name, literal="string")
    key = bindings.parent_key(items, "inputs", scope.inputs, pointer, scope.findings)
    fields = (scope.inputs[key] if key is not None else None) or {}
    if LATER in fields and "value" in fields:
        return None, PipelineInput(input=fields[LATER].name or str(key), literal="string")
    if key is not None and "value" not in fields:
        scope.findings.wrong(pointer, f"the input {key!r} is no text with items", "type: string, with a list as JSON")
    return fields.get("value"), None


def _item(
    item: Mapping[str, Any], loop: RawLoop, scope: PipelineScope, location: DocumentLocation
) -> dict[str, Fields]:
    """The inputs of one turn, as the job spec has them."""
    declared, raw_inputs = loop.declared(), {str(name): _plain(value) for name, value in item.items()}
    names = {}
    for name in raw_inputs:
        key = same_name(name, declared)
        if key is None and loop.body.component_at is not None:
            message = f"{loop.body.name!r} has no input {name!r}"
            scope.findings.wrong(location.at(name), message, f"it has: {quoted(declared)}")
            return {}
        names[name] = key or name
    item_scope = replace(scope, later={}, outputs_to={}, origins={})
    fields = {
        names[name]: bindings.step_inputs(
            {names[name]: value},
            {names[name]: declared[names[name]]} if names[name] in declared else None,
            item_scope,
            location,
        ).get(names[name])
        for name, value in raw_inputs.items()
    }
    if item_scope.later:
        hint = "bind that input of the body to it, or let a step make all items"
        scope.findings.wrong(location.pointer, "an item can't have an output of a step", hint)
    return {name: each for name, each in fields.items() if each is not None}


def _plain(value: Any) -> Any:
    """An input of an item as documents have it: Azure ML's client writes it in two other ways."""
    if isinstance(value, str) and value.startswith("{'"):
        with suppress(ValueError, SyntaxError):
            value = ast.literal_eval(value)
    if isinstance(value, dict) and ("uri" in value or "job_input_type" in value):
        value = {"type": value.get("job_input_type"), "path": value.get("uri"), "mode": value.get("mode")}
        return {key: each for key, each in value.items() if each is not None}
    return value


def _kind(fields: Fields, declared: GivenInput | None) -> str:
    if "value" not in fields:
        return str(fields.get("type", "uri_folder"))
    if declared is not None and declared.type in LITERAL_TYPES:
        return declared.type
    match fields["value"]:
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
    return "string"


# do_while


def _turns_of_while(loop: RawLoop, node: DoWhile, scope: PipelineScope) -> _Turns:
    types = (scope.steps or {}).get(loop.step.name) or {}
    declared = loop.declared()
    carried: dict[str, Any] = {}
    kinds: dict[str, str] = {}
    for raw_output, raw_inputs in node.mapping.items():
        pointer = loop.at("mapping", raw_output)
        output = same_name(_port(raw_output), types)
        if output is None:
            scope.findings.wrong(
                pointer, f"{loop.body.name!r} has no output {_port(raw_output)!r}", f"it has: {quoted(types)}"
            )
            continue
        for raw_input in raw_inputs if isinstance(raw_inputs, list) else [raw_inputs]:
            has = {**dict.fromkeys(loop.inputs), **declared}
            name = same_name(_port(raw_input), has)
            if name is None:
                scope.findings.wrong(
                    pointer, f"{loop.body.name!r} has no input {_port(raw_input)!r}", f"it has: {quoted(has)}"
                )
            elif name in carried:
                message = f"the input {name!r} is the output {carried[name]['output']!r} already"
                scope.findings.wrong(pointer, message)
            else:
                carried[name] = {"output": output}
                kinds[name] = types[output]
    loop_fields: dict[str, Any] = {
        "type": DO_WHILE,
        "max_turns": node.limits.max_iteration_count,
        "carried": carried,
        "condition": _condition(loop, node, types, scope.findings),
    }
    first = replace(scope, later={}, outputs_to={}, origins={})
    inputs: dict[str, Fields] = {}
    sources: dict[str, StepInput | PipelineInput] = {}
    for name in carried:
        raw = {name: loop.inputs[key]} if (key := same_name(name, loop.inputs)) is not None else {}
        declaration = {name: declared[name]} if name in declared else None
        fields = bindings.step_inputs(raw, declaration, first, loop.body.location.below("inputs")).get(name)
        if fields is None:
            continue
        if (later := first.later.get(name)) is None:
            inputs[name] = fields
            continue
        how = {"literal": later.literal} if later.literal else _how_of(fields)
        if later.step:
            sources[name] = StepInput(step=later.step, output=later.name, **how)
        else:
            sources[name] = PipelineInput(input=later.name, **how)
    return _Turns(kinds, loop_fields, inputs, sources)


def _how_of(fields: Fields) -> dict[str, Any]:
    entry = Input.model_validate(fields)
    return {key: getattr(entry, key) for key in LATER_FIELDS if key != "literal"}


def _port(named: Any) -> str:
    """The name of an input or output of the body, which may stand in an expression."""
    return str(only_expression(named) or named).rpartition(".")[2]


def _condition(loop: RawLoop, node: DoWhile, types: Mapping[str, str], findings: Findings) -> str:
    if node.condition is None:
        return ""
    name = same_name(_port(node.condition), types)
    if name is None:
        message = f"{loop.body.name!r} has no output {_port(node.condition)!r}"
        findings.wrong(loop.at("condition"), message, f"it has: {quoted(types)}")
    elif types[name] not in _CONDITIONS:
        message = f"the output {name!r} is of type {types[name]}, in which no truth value can be"
        findings.wrong(loop.at("condition"), message, "type: boolean, a file with true or false in it")
    return name or ""
