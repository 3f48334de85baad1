"""`parallel_for` and `do_while`: a step that runs several times, as a pipeline (docs/pipelines.md#loops)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from parallelrun.builders.parts import Input, Output, without_none
from parallelrun.errors import InvalidInput

_BODY: Final = "body"
_VALUES: Final = ("string", "number", "integer", "boolean")


@dataclass(frozen=True, kw_only=True)
class Loop:
    """A pipeline of one loop, which `Client.jobs.create` and `run` accept."""

    body: Any
    name: str
    fields: Mapping[str, Any]

    def document(self) -> dict[str, Any]:
        """The content of a job file for the same pipeline: outputs of the body are outputs of the pipeline.

        Raises:
            InvalidInput: the body describes no step.
        """
        body = dict(self.body) if isinstance(self.body, Mapping) else self._described()
        loop = {"body": f"${{{{parent.jobs.{_BODY}}}}}", **self.fields}
        outputs = {name: _output(output) for name, output in (body.get("outputs") or {}).items()}
        bound = {name: f"${{{{parent.outputs.{name}}}}}" for name in outputs}
        if loop["type"] == "parallel_for":
            outputs = {
                name: {"type": "uri_file" if output.get("type") in _VALUES else "uri_folder"}
                for name, output in outputs.items()
            }
            loop["outputs"] = bound
        else:
            body["outputs"] = {name: {**output, "path": bound[name]} for name, output in outputs.items()}
        return {
            "type": "pipeline",
            "display_name": self.name,
            "outputs": outputs,
            "jobs": {_BODY: body, "loop": without_none(loop)},
        }

    def _described(self) -> dict[str, Any]:
        describe = getattr(self.body, "document", None)
        if describe is None:
            hint = "as of parallel_run_function, or a mapping with the fields of a step"
            raise InvalidInput.at("/body", f"{type(self.body).__name__} describes no step", hint)
        document: dict[str, Any] = describe()
        return document


def parallel_for(
    *,
    body: Any,
    items: Sequence[Mapping[str, Any]] | Mapping[str, Mapping[str, Any]],
    max_concurrency: int | None = None,
    name: str = "parallel_for",
) -> Loop:
    """A pipeline that runs a step once for each item.

    Args:
        body: a job of `parallel_run_function`, a `PythonScriptStep`, or a mapping with the fields of a step.
        items: the inputs of the body that differ, for each turn, or by the names of the turns.
        max_concurrency: most turns that run at the same time; None: all of them.
        name: a label for people.
    """
    values = (
        {turn: _item(item) for turn, item in items.items()}
        if isinstance(items, Mapping)
        else [_item(item) for item in items]
    )
    return Loop(
        body=body, name=name, fields={"type": "parallel_for", "items": values, "max_concurrency": max_concurrency}
    )


def do_while(
    *,
    body: Any,
    mapping: Mapping[str, str | Sequence[str]],
    max_iteration_count: int,
    condition: str | None = None,
    name: str = "do_while",
) -> Loop:
    """A pipeline that runs a step again for as long as an output of it is true.

    Args:
        body: as of `parallel_for`.
        mapping: outputs of the body, each with the input, or the inputs, that it is in the next turn.
        max_iteration_count: most turns, up to 1,000.
        condition: the output that is a file with `true` or `false` in it; None: all turns run.
        name: a label for people.
    """
    inputs = {output: [each] if isinstance(each, str) else list(each) for output, each in mapping.items()}
    limits = {"max_iteration_count": max_iteration_count}
    return Loop(
        body=body, name=name, fields={"type": "do_while", "mapping": inputs, "condition": condition, "limits": limits}
    )


def _item(item: Mapping[str, Any]) -> dict[str, Any]:
    # A turn's input has its name already.
    return {
        name: replace(value, name=None).fields() if isinstance(value, Input) else value for name, value in item.items()
    }


def _output(output: Any) -> dict[str, Any]:
    if isinstance(output, Output):
        return output.fields()
    return dict(output) if isinstance(output, Mapping) else {}
