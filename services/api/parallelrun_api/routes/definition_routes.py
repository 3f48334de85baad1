"""The routes that are the same for all that is defined by a name: list, get, define and delete. Each is declared."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from anyio.to_thread import run_sync
from fastapi import Request, Response

from parallelrun_api.context import Context, Ctx
from parallelrun_api.http.answers import json_answer, no_content
from parallelrun_api.routes.responses import created
from parallelrun_api.routes.router import Operations
from parallelrun_api.submission.upload import read_document
from parallelrun_core.answers.answer import Answer


@dataclass(frozen=True, kw_only=True)
class DefinitionRoutes:
    """The four routes of one kind of definitions."""

    path: str
    """Path of the list; names are below it."""
    noun: str
    """The word for one of them, as `batch endpoint`."""
    name: Any
    """Describes the parameter of the path that has the name, whose alias it is."""
    service: Callable[[Context], Any]
    """Has `all`, `get`, `put` and `remove`, as `DefinitionService`."""
    models: tuple[type[Answer], type[Answer]]
    """The answers with one of them, and with the list."""
    answer: Callable[[Any], Answer]
    """Makes an answer of a definition."""
    answer_now: Callable[[Context], Callable[[Any], Answer]] | None = None
    """Makes one with the state that it has now, for list and get; None: it has none."""
    body: dict[str, Any]
    """The body of a definition, as the OpenAPI document has it."""
    texts: tuple[str, str, str, str]
    """Describe how to list, get, define and delete."""
    redefined: str = "It is defined anew."
    removed: str
    convertor: str = ""
    """Convertor of the parameter of the path, where a verb may follow it."""
    is_for_operators: bool = False
    """Only operators may define and delete them."""
    remove_problems: tuple[int, ...] = (403, 404)

    def add_to(self, router: Operations) -> None:
        """Add them to the routes of a subject."""
        key, one = self.noun.replace(" ", "_"), f"{self.path}/{{{self.name.alias}{self.convertor}}}"
        (model, page), (list_all, get), (put, remove) = self.models, self._reads(), self._changes()
        add = router.operation
        add(f"GET {self.path}", f"List {self.noun}s", page, name=f"list_{key}s", description=self.texts[0])(list_all)
        add(f"GET {one}", f"Get a {self.noun}", model, (404,), name=f"get_{key}", description=self.texts[1])(get)
        add(
            f"PUT {one}", f"Define a {self.noun}", model, (400, 403, 404, 413, 415), self.redefined,
            others=created(model), name=f"put_{key}",
            description=self.texts[2], openapi_extra=self.body,
        )(put)  # fmt: skip
        add(
            f"DELETE {one}", f"Delete a {self.noun}", None, self.remove_problems, self.removed, name=f"delete_{key}",
            description=self.texts[3],
        )(remove)  # fmt: skip

    def _reads(self) -> tuple[Callable[..., Response], Callable[..., Response]]:
        def list_all(context: Ctx) -> Response:
            answer = self.answer_now(context) if self.answer_now else self.answer
            return json_answer(self.models[1](items=[answer(each) for each in self.service(context).all()]))

        def get(context: Ctx, name: str = self.name) -> Response:
            answer = self.answer_now(context) if self.answer_now else self.answer
            return json_answer(answer(self.service(context).get(name)))

        return list_all, get

    def _changes(self) -> tuple[Callable[..., Any], Callable[..., Response]]:
        async def put(request: Request, context: Ctx, name: str = self.name) -> Response:
            self._check(context, request)
            document = await read_document(request)
            definition, is_new = await run_sync(self.service(context).put, name, document)
            return json_answer(self.answer(definition), 201 if is_new else 200)

        def remove(request: Request, context: Ctx, name: str = self.name) -> Response:
            self._check(context, request)
            self.service(context).remove(name)
            return no_content()

        return put, remove

    def _check(self, context: Context, request: Request) -> None:
        if self.is_for_operators:
            context.operators.check(request.state.token_name)
