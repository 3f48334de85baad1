"""A `PipelineSpec` by itself: what the client makes of a pipeline and sends, with all expressions resolved.

People write pipelines as v2 documents (docs/pipelines.md).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from parallelrun_core.azure.draft import Draft
from parallelrun_core.azure.findings import DocumentLocation, Findings, as_mapping, quoted
from parallelrun_core.azure.pipelines.draft import PipelineDraft, StepDraft
from parallelrun_core.azure.scope import STAND_IN
from parallelrun_core.errors import InvalidInput
from parallelrun_core.spec import JobSpec, PipelineSpec
from parallelrun_core.spec.later_inputs import PipelineInput, StepInput, StepOutput
from parallelrun_core.spec.pipeline import Step
from parallelrun_core.spec.pipeline_steps import known_part


def is_resolved(document: Mapping[Any, Any]) -> bool:
    """Return whether this is a `PipelineSpec`."""
    return document.get("type") == "pipeline" and isinstance(document.get("steps"), dict)


def read_resolved(
    document: Mapping[str, Any], location: DocumentLocation, findings: Findings, later: Collection[str] = ()
) -> PipelineDraft:
    """A pipeline's spec, with each of its steps checked as far as it is known by now.

    Args:
        later: those of its inputs that an outer pipeline makes.

    Raises:
        InvalidInput: with one problem for each wrong field.
    """
    draft = PipelineDraft(dict(document), {}, location.pointer)
    spec = draft.finish(findings)
    if spec.loop is not None:
        later = {*later, *spec.inputs, *spec.loop.carried, *next(iter(spec.loop.items.values()), ())}
        if spec.loop.items_from:
            later |= {
                each.input
                for each in next(iter(spec.steps.values())).inputs_from.values()
                if isinstance(each, PipelineInput)
            }
    for name, step in spec.steps.items():
        where = location.below("steps", name, "job")
        own_findings = Findings()
        try:
            _check_inputs(step, later, location.below("steps", name), own_findings)
            draft.steps[name] = _read_step(step, where, own_findings)
        except InvalidInput as error:
            own_findings.problems = list(error.problems)
        findings.problems += own_findings.problems
    findings.check()
    _check_outputs(spec, draft, location, findings)
    findings.check()
    return draft


def _read_step(step: Step, where: DocumentLocation, findings: Findings) -> StepDraft:
    if step.type == "pipeline":
        inner = read_resolved(step.job, where, findings, step.inputs_from)
        return StepDraft(inner, inner.finish(findings))
    later_inputs = {name: each.resolved(STAND_IN) for name, each in step.inputs_from.items()}
    inputs = as_mapping(step.job.get("inputs"), where.at("inputs"), findings)
    findings.check()
    try:
        spec = JobSpec.parse({**step.job, "inputs": {**inputs, **later_inputs}})
    except InvalidInput as error:
        findings.take(error, {}, where.pointer)
        findings.check()
        raise AssertionError from error
    return StepDraft(Draft(default=where.pointer, is_step=True), known_part(spec, step.inputs_from))


def _check_inputs(step: Step, later: Collection[str], location: DocumentLocation, findings: Findings) -> None:
    for name, step_input in step.inputs_from.items():
        if isinstance(step_input, PipelineInput) and step_input.input not in later:
            hint = f"they are: {quoted(later)}"
            findings.wrong(
                location.at("inputs_from", name), f"no outer pipeline makes the input {step_input.input!r}", hint
            )
    findings.check()


def _check_outputs(spec: PipelineSpec, draft: PipelineDraft, location: DocumentLocation, findings: Findings) -> None:
    """Every output that something is bound to must be there."""
    bound: list[tuple[str, StepOutput]] = []
    for name, step in spec.steps.items():
        at = location.below("steps", name)
        bound += (
            (at.at("inputs_from", key), each) for key, each in step.inputs_from.items() if isinstance(each, StepInput)
        )
        bound += ((at.at("conditions"), each.of) for each in step.conditions if isinstance(each.of, StepOutput))
        for output, key in step.outputs_to.items():
            if key not in spec.outputs:
                findings.wrong(at.at("outputs_to", output), f"the pipeline has no output {key!r}")
            elif spec.outputs[key].of != StepOutput(step=name, output=output):
                findings.wrong(at.at("outputs_to", output), f"the pipeline's output {key!r} is another one")
    bound += ((location.at("outputs", key), each.of) for key, each in spec.outputs.items() if each.of is not None)
    for pointer, of in bound:
        outputs = draft.steps[of.step].known_part.outputs if of.step in draft.steps else {}
        if of.output not in outputs:
            message = f"the step {of.step!r} has no output {of.output!r}"
            findings.wrong(pointer, message, f"it has: {quoted(outputs)}")
