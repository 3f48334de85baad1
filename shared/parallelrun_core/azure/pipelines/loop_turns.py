"""The turns of a loop: items of a parallel_for; condition of a do_while, and what each turn hands to the next."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from parallelrun_core.azure import bindings
from parallelrun_core.azure.findings import DocumentLocation, Findings, quoted
from parallelrun_core.azure.pipelines.loop_nodes import CONDITIONS, FILES, ITEMS, DoWhile, ParallelFor, RawLoop, Turns
from parallelrun_core.azure.pipelines.wiring import DO_WHILE, PARALLEL_FOR
from parallelrun_core.azure.scope import LATER, Fields, PipelineScope
from parallelrun_core.azure.v2_models import LITERAL_TYPES, GivenInput
from parallelrun_core.errors import InvalidInput
from parallelrun_core.pipelines.turns import named_items
from parallelrun_core.spec.expressions import is_expression, only_expression, same_name, step_reference
from parallelrun_core.spec.fields import Input
from parallelrun_core.spec.later_inputs import LATER_FIELDS, PipelineInput, StepInput


def turns_of_items(loop: RawLoop, node: ParallelFor, scope: PipelineScope) -> Turns:
    """Read the items of a `parallel_for`; empty, with problems in the scope's findings, if there are none."""
    raw, source = node.items, None
    pointer = loop.at("items")
    if is_expression(raw):
        raw, source = _bound_items(loop, raw, scope)
        if raw is None and source is None:
            return Turns({}, {}, {}, {})
    if source is not None:
        names: dict[str, str] = {
            name: entry.type or "string" for name, entry in loop.declared().items() if _is_open(name, loop)
        }
        if not names:
            hint = "declare those that come from the items with a type, and give them no value"
            scope.findings.wrong(pointer, f"all inputs of {loop.body.name!r} have values already", hint)
        return Turns(names, {"type": PARALLEL_FOR, "items_from": ITEMS}, {}, {ITEMS: source})
    try:
        items = named_items(raw)
    except InvalidInput as error:
        for problem in error.problems:
            scope.findings.wrong(pointer, problem.message, problem.hint)
        return Turns({}, {}, {}, {})
    at_items, is_list = loop.step.location.below("items"), isinstance(raw, list)
    read = {
        name: _item(item, loop, scope, at_items.below(number if is_list else name))
        for number, (name, item) in enumerate(items.items())
    }
    scope.findings.check()
    first = next(iter(read.values()))
    declared = loop.declared()
    kinds = {name: _kind(fields, declared.get(name)) for name, fields in first.items()}
    return Turns(kinds, {"type": PARALLEL_FOR, "items": read}, {}, {})


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
        if kind not in FILES:
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


def turns_of_while(loop: RawLoop, node: DoWhile, scope: PipelineScope) -> Turns:
    """Read the condition of a `do_while`, and the outputs that the next turn takes as inputs."""
    types = (scope.steps or {}).get(loop.step.name) or {}
    carried, kinds = _carried(loop, node, types, scope.findings)
    loop_fields: dict[str, Any] = {
        "type": DO_WHILE,
        "max_turns": node.limits.max_iteration_count,
        "carried": carried,
        "condition": _condition(loop, node, types, scope.findings),
    }
    return Turns(kinds, loop_fields, *_first_inputs(loop, carried, scope))


def _carried(
    loop: RawLoop, node: DoWhile, types: Mapping[str, str], findings: Findings
) -> tuple[dict[str, Any], dict[str, str]]:
    """The inputs of the next turn by name: the output that each is, and the type of it."""
    carried: dict[str, Any] = {}
    kinds: dict[str, str] = {}
    for raw_output, raw_inputs in node.mapping.items():
        pointer = loop.at("mapping", raw_output)
        output = same_name(_port(raw_output), types)
        if output is None:
            message = f"{loop.body.name!r} has no output {_port(raw_output)!r}"
            findings.wrong(pointer, message, f"it has: {quoted(types)}")
            continue
        for raw_input in raw_inputs if isinstance(raw_inputs, list) else [raw_inputs]:
            has = {**dict.fromkeys(loop.inputs), **loop.declared()}
            name = same_name(_port(raw_input), has)
            if name is None:
                message = f"{loop.body.name!r} has no input {_port(raw_input)!r}"
                findings.wrong(pointer, message, f"it has: {quoted(has)}")
            elif name in carried:
                message = f"the input {name!r} is the output {carried[name]['output']!r} already"
                findings.wrong(pointer, message)
            else:
                carried[name] = {"output": output}
                kinds[name] = types[output]
    return carried, kinds


def _first_inputs(
    loop: RawLoop, carried: Iterable[str], scope: PipelineScope
) -> tuple[dict[str, Fields], dict[str, StepInput | PipelineInput]]:
    """The first values of what later turns take from outputs: those that are here, and those from elsewhere."""
    declared = loop.declared()
    first = replace(scope, later={}, outputs_to={}, origins={})
    inputs: dict[str, Fields] = {}
    sources: dict[str, StepInput | PipelineInput] = {}
    for name in carried:
        raw = {name: loop.inputs[key]} if (key := same_name(name, loop.inputs)) is not None else {}
        declaration = {name: declared[name]} if name in declared else None
        fields = bindings.step_inputs(raw, declaration, first, loop.body.location.below("inputs")).get(name)
        if fields is None:
            if not scope.findings.problems:
                message = f"the optional input {name!r} has no value for the first turn, and later ones have it"
                scope.findings.wrong(loop.body.location.at("inputs", name), message, "give it one, or don't map to it")
            continue
        if (later := first.later.get(name)) is None:
            inputs[name] = fields
            continue
        how = {"literal": later.literal} if later.literal else _how_of(fields)
        if later.step:
            sources[name] = StepInput(step=later.step, output=later.name, **how)
        else:
            sources[name] = PipelineInput(input=later.name, **how)
    return inputs, sources


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
    elif types[name] not in CONDITIONS:
        message = f"the output {name!r} is of type {types[name]}, in which no truth value can be"
        findings.wrong(loop.at("condition"), message, "type: boolean, a file with true or false in it")
    return name or ""
