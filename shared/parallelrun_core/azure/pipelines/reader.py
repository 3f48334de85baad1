"""A v2 document of several steps becomes a pipeline, and so does each pipeline in it (reference §2.1, §2.2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from parallelrun_core.azure import bindings, output_bindings
from parallelrun_core.azure.components import open_component
from parallelrun_core.azure.findings import DocumentLocation, Findings, as_mapping, quoted
from parallelrun_core.azure.pipelines.conditions import conditions_of
from parallelrun_core.azure.pipelines.draft import PipelineDraft, StepDraft
from parallelrun_core.azure.pipelines.header import PipelineHeader, read_header
from parallelrun_core.azure.pipelines.loop_nodes import types_of_loop, with_names_of_loops, without_bodies
from parallelrun_core.azure.pipelines.loops import read_loop
from parallelrun_core.azure.pipelines.steps import OF_THE_STEP, names_after, read_step
from parallelrun_core.azure.pipelines.wiring import (
    IF_ELSE,
    RUN_NOTHING,
    RawStep,
    output_types,
    raw_steps,
    with_artifacts,
)
from parallelrun_core.azure.scope import LATER, DocumentTooLarge, Fields, Later, PipelineScope
from parallelrun_core.azure.v2_models import V2Pipeline
from parallelrun_core.azure.v2_reader import label
from parallelrun_core.errors import InvalidInput
from parallelrun_core.spec.expressions import only_expression, same_name, step_reference
from parallelrun_core.spec.fields import Input
from parallelrun_core.spec.later_inputs import LATER_FIELDS, PipelineInput, StepInput, StepOutput
from parallelrun_core.spec.pipeline import Step
from parallelrun_core.spec.pipeline_steps import MAX_DEPTH, known_part


def read_pipeline(document: Mapping[str, Any], location: DocumentLocation, findings: Findings) -> PipelineDraft:
    """The pipeline that a document describes: by its own steps, or by those of a component.

    Raises:
        InvalidInput: with one problem for each wrong field, as far as they can be found.
    """
    header = read_header(document, location, findings)
    scope = PipelineScope(findings, default_datastore=header.default_datastore, default_compute=header.default_compute)
    scope.job_name = label(header.fields.display_name or header.fields.name or "pipeline")
    inner, where = document, location
    values = as_mapping(document.get("inputs"), location.at("inputs"), findings)
    if header.fields.component is not None:
        if document.get("jobs"):
            findings.wrong(location.at("component"), "set either component or jobs, not both")
        inner, where = open_component(header.fields.component, location.below("component"), findings)
        inputs = _inputs_of_component(inner, where, values, scope, location)
    else:
        inputs = bindings.pipeline_inputs(values, location.below("inputs"), findings)
    outputs = as_mapping(document.get("outputs"), location.at("outputs"), findings)
    declared = as_mapping(inner.get("outputs"), where.at("outputs"), findings) if inner is not document else None
    scope.outputs = output_bindings.step_outputs(outputs, declared, scope, location.below("outputs"))
    scope.inputs, scope.inputs_at, scope.outputs_at = inputs, location.at("inputs"), location.at("outputs")
    draft = _read(inner, where, scope, findings)
    _put_header(header, scope.job_name, draft, location, findings)
    return draft


def _inputs_of_component(
    component: Mapping[str, Any],
    where: DocumentLocation,
    values: Mapping[str, Any],
    scope: PipelineScope,
    location: DocumentLocation,
) -> dict[str, Fields | None]:
    """The inputs of a pipeline component; None for one that is optional and not given."""
    raw = as_mapping(component.get("inputs"), where.at("inputs"), scope.findings)
    declared = bindings.declarations(raw, where.below("inputs"), scope.findings)
    inputs = bindings.step_inputs(values, declared, scope, location.below("inputs"))
    return {**dict.fromkeys(declared), **inputs}


def _put_header(
    header: PipelineHeader, name: str, draft: PipelineDraft, location: DocumentLocation, findings: Findings
) -> None:
    fields, settings = header
    tags = {str(key): str(value) for key, value in (fields.tags or {}).items()}
    values = {
        "name": name,
        "description": str(fields.description)[:4096] if fields.description else None,
        "tags": tags or None,
        "experiment": str(fields.experiment_name)[:255] if fields.experiment_name else None,
        "continue_on_step_failure": settings.continue_on_step_failure,
        "force_rerun": settings.force_rerun,
    }
    draft.fields |= {key: value for key, value in values.items() if value is not None}
    draft.origins |= {"name": location.at("display_name"), "experiment": location.at("experiment_name")}
    of_loops = {key: values[key] for key in ("continue_on_step_failure", "force_rerun") if values[key] is not None}
    for step in draft.fields["steps"].values():
        if "loop" in step["job"]:
            step["job"] |= of_loops
    for key in ("continue_on_step_failure", "force_rerun"):
        draft.origins[key] = location.at("settings", key)
    for key, is_first in (("on_init", True), ("on_finalize", False)):
        if (step := getattr(settings, key)) is not None:
            _put_at_an_end(step, draft.fields["steps"], location.at("settings", key), findings, is_first=is_first)


def _put_at_an_end(
    named: str, steps: dict[str, dict[str, Any]], pointer: str, findings: Findings, *, is_first: bool
) -> None:
    """Let a step run before all others, or after them, as `on_init` and `on_finalize` of a pipeline say."""
    key = step_at_an_end(named, steps, pointer, findings)
    if key is None:
        return
    others = [name for name in steps if name != key]
    for name in others if is_first else [key]:
        before = [key] if is_first else others
        steps[name]["after"] = list(dict.fromkeys([*steps[name].get("after", ()), *before]))
    if not is_first:
        findings.note(pointer, "it runs last, and only if all other steps have completed")


def step_at_an_end(named: str, steps: Mapping[str, object], pointer: str, findings: Findings) -> str | None:
    """The step that is to run first or last, by its name or an expression; None, with a problem, if there is none."""
    target = step_reference(only_expression(named) or "")
    key = same_name(target.step if target is not None else named, steps)
    if key is None:
        findings.wrong(pointer, f"there is no step {named!r}", f"they are: {quoted(steps)}")
    return key


# The steps


def _read(
    document: Mapping[str, Any], location: DocumentLocation, scope: PipelineScope, findings: Findings
) -> PipelineDraft:
    """A pipeline, whose inputs and outputs are those of the scope."""
    jobs = as_mapping(document.get("jobs"), location.at("jobs"), findings)
    scope.budget.take(len(jobs), location.at("jobs"))
    raw = with_artifacts(raw_steps(jobs, location.below("jobs"), scope))
    findings.check()  # or steps would be missing, to which others are bound
    raw, loops = without_bodies(raw, findings)
    findings.check()
    types = {step.name: output_types(step, scope.outputs) for step in raw.values() if step.kind not in RUN_NOTHING}
    types |= {name: types_of_loop(loop, output_types(loop.body, scope.outputs)) for name, loop in loops.items()}
    types |= {loop.body.name: types[name] for name, loop in loops.items() if loop.names_body}
    conditions = conditions_of(raw, types, scope.inputs, findings)
    drafts: dict[str, StepDraft] = {}
    steps: dict[str, Step] = {}
    for step in raw.values():
        if step.kind == IF_ELSE:
            continue
        own_findings = Findings(names=findings.names)
        try:
            own_scope = replace(scope, findings=own_findings, steps=types)
            if step.name in loops:
                drafts[step.name], read = read_loop(loops[step.name], own_scope, _read_one)
            else:
                drafts[step.name], read = _read_one(step, own_scope, own_findings)
            if read.type != "pipeline":  # whose steps are counted
                scope.budget.take_text(read.job, step.location.pointer)
            after = _after(step, types, own_findings)
            steps[step.name] = read.model_copy(update={"after": after, "conditions": conditions.get(step.name, ())})
        except DocumentTooLarge:
            raise
        except InvalidInput as error:  # all of them are told
            own_findings.problems = list(error.problems)
        findings.problems += own_findings.problems
        findings.notes += own_findings.notes
    steps = with_names_of_loops(steps, loops)
    fields = {
        "type": "pipeline",
        "inputs": {name: entry for name, entry in scope.inputs.items() if entry is not None and LATER not in entry},
        "outputs": _outputs(scope, raw, steps, findings),
        "steps": {name: step.model_dump(mode="json", exclude_defaults=True) for name, step in steps.items()},
    }
    origins = {"steps": location.at("jobs"), "outputs": scope.outputs_at, "inputs": scope.inputs_at}
    return PipelineDraft(fields, origins, location.pointer, drafts)


def _after(step: RawStep, types: Mapping[str, Any], findings: Findings) -> tuple[str, ...]:
    after = []
    for name in names_after(step, findings):
        key = same_name(name, types)
        if key is None:
            findings.wrong(step.location.at("after"), f"there is no step {name!r}")
        else:
            after.append(key)
    findings.check()
    return tuple(after)


def _read_one(step: RawStep, scope: PipelineScope, findings: Findings) -> tuple[StepDraft, Step]:
    scope = replace(
        scope,
        job_name=label(f"{scope.job_name}-{step.name}"),
        unique_name=f"{scope.unique_name}-{step.name}",
        later={},
        outputs_to={},
        origins={},
    )
    if step.kind == "pipeline":
        return _read_nested(step, scope, findings)
    read = read_step(step, scope, findings)
    kind = "command" if getattr(read.spec, "command", None) else "parallel"
    return StepDraft(read.draft, known_part(read.spec, scope.later)), _step(
        kind, read.fields(), read.inputs(), step, scope
    )


def _read_nested(step: RawStep, scope: PipelineScope, findings: Findings) -> tuple[StepDraft, Step]:
    """A step that is a pipeline: by its component, or by its own steps."""
    if scope.depth + 1 >= MAX_DEPTH:
        raise DocumentTooLarge.at(step.location.pointer, f"pipelines are nested more than {MAX_DEPTH} deep")
    header = _nested_header(step, findings)
    inner, where = (
        (step.component, step.component_at) if step.component_at is not None else (step.fields, step.location)
    )
    values = as_mapping(step.fields.get("inputs"), step.location.at("inputs"), findings)
    declared = None
    if inner is step.fields:
        inputs: dict[str, Fields | None] = dict(
            bindings.step_inputs(values, None, scope, step.location.below("inputs"))
        )
    else:
        inputs = _inputs_of_component(inner, where, values, scope, step.location)
        declared = as_mapping(inner.get("outputs"), where.at("outputs"), findings)
    raw_outputs = as_mapping(step.fields.get("outputs"), step.location.at("outputs"), findings)
    outputs = output_bindings.step_outputs(raw_outputs, declared, scope, step.location.below("outputs"))
    inside = PipelineScope(
        findings,
        job_name=scope.job_name,
        unique_name=scope.unique_name,
        default_datastore=header.default_datastore or scope.default_datastore,
        default_compute=header.default_compute or scope.default_compute,
        inputs={name: _inside(name, fields, scope.later) for name, fields in inputs.items()},
        outputs=outputs,
        inputs_at=step.location.at("inputs"),
        outputs_at=step.location.at("outputs"),
        depth=scope.depth + 1,
        budget=scope.budget,
    )
    draft = _read(inner, where, inside, findings)
    _put_header(header, label(header.fields.display_name or step.name), draft, step.location, findings)
    spec = draft.finish(findings)
    later = {
        name: Input.model_validate(fields)
        for name, fields in inputs.items()
        if fields is not None and name in scope.later and not scope.later[name].literal
    }
    job = {"type": "pipeline", **spec.model_dump(mode="json", exclude_defaults=True)}
    return StepDraft(draft, spec), _step("pipeline", job, later, step, scope)


def _nested_header(step: RawStep, findings: Findings) -> PipelineHeader:
    if step.component_at is not None:
        component = {name: value for name, value in step.component.items() if name not in OF_THE_STEP}
        findings.validate(V2Pipeline, component, step.component_at.pointer, ignores_unknown=True)
    fields = {name: value for name, value in step.fields.items() if name not in OF_THE_STEP}
    return read_header({"type": "pipeline", **fields}, step.location, findings)


def _inside(name: str, fields: Fields | None, later: Mapping[str, Later]) -> Fields | None:
    """An input of a nested pipeline, as its steps see it."""
    if fields is None or name not in later:
        return fields
    literal = later[name].literal
    return {**fields, **({"type": literal} if literal else {}), LATER: Later("", name, literal)}


def _step(kind: str, job: dict[str, Any], later: Mapping[str, Input], step: RawStep, scope: PipelineScope) -> Step:
    inputs: dict[str, StepInput | PipelineInput] = {}
    for name, source in scope.later.items():
        if name in later:
            how = {key: getattr(later[name], key) for key in LATER_FIELDS if key != "literal"}
        else:
            how = {"literal": source.literal}
        if source.step:
            inputs[name] = StepInput(step=source.step, output=source.name, **how)
        else:
            inputs[name] = PipelineInput(input=source.name, **how)
    return Step.model_validate(
        {
            "type": kind,
            "job": job,
            "inputs_from": inputs,
            "outputs_to": scope.outputs_to,
            "is_deterministic": step.is_deterministic,
        }
    )


def _outputs(
    scope: PipelineScope, raw: Mapping[str, RawStep], steps: Mapping[str, Step], findings: Findings
) -> dict[str, Any]:
    """The outputs of the pipeline, each with the one output of a step that it is."""
    of: dict[str, StepOutput] = {}
    for name, step in steps.items():
        for output, key in step.outputs_to.items():
            if key in of:
                message = f"the pipeline's output {key!r} is the output {of[key].output!r} of {of[key].step!r} already"
                findings.wrong(raw[name].location.at("outputs", output), message, "an output has one origin")
            of.setdefault(key, StepOutput(step=name, output=output))
    fields = {}
    for key, output_fields in scope.outputs.items():
        fields[key] = {**output_fields, "of": of[key].model_dump()} if key in of else output_fields
        if key not in of:
            findings.note(f"{scope.outputs_at}/{key}", "no step writes this output")
    return fields
