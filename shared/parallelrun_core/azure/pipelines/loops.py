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

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from parallelrun_core.azure import bindings, output_bindings
from parallelrun_core.azure.findings import Findings, as_mapping
from parallelrun_core.azure.pipelines.draft import PipelineDraft, StepDraft
from parallelrun_core.azure.pipelines.loop_nodes import DoWhile, ParallelFor, RawLoop
from parallelrun_core.azure.pipelines.loop_turns import turns_of_items, turns_of_while
from parallelrun_core.azure.pipelines.wiring import RawStep
from parallelrun_core.azure.scope import Fields, Later, PipelineScope
from parallelrun_core.azure.v2_reader import label
from parallelrun_core.spec.expressions import same_name
from parallelrun_core.spec.later_inputs import LATER_FIELDS, LaterInput, PipelineInput, StepInput
from parallelrun_core.spec.pipeline import MAX_TURNS, Step

_TURN: Final = "__turn_"
"""What names of inputs begin with, here, that change by turns."""
ReadOne = Callable[[RawStep, PipelineScope, Findings], tuple[StepDraft, Step]]


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
        turns_of_items(loop, loop.node, scope)
        if isinstance(loop.node, ParallelFor)
        else turns_of_while(loop, loop.node, scope)
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
    _note_how_carried(turns.loop.get("carried", {}), body_sources.values())
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
    inputs_from = {**sources, **turns.sources}
    update = {"type": "pipeline", "job": fields, "inputs_from": inputs_from, "outputs_to": outputs_to}
    return StepDraft(inner, spec), step.model_copy(update=update)


def _note_how_carried(carried_inputs: dict[str, Any], sources: Iterable[PipelineInput]) -> None:
    """Add to each input that a turn takes over from the one before how the body reads it."""
    for name, carried in carried_inputs.items():
        source = next((each for each in sources if each.input == name), None)
        carried_inputs[name] = {**carried, **(_how(source) if source is not None else {})}


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
    fields = output_bindings.step_outputs(raw, declared, own_scope, loop.step.location.below("outputs"))
    for name in fields:
        if fields[name].pop("asset", None):
            scope.findings.note(loop.at("outputs", name), "the outputs of several turns don't become an asset")
    return {name: {**fields[name], **of[name]} for name in fields}, own_scope.outputs_to


# parallel_for


# do_while
