"""The routes that are the same for all that is defined by a name: list, get, define and delete. Each is declared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from anyio.to_thread import run_sync
from fastapi import APIRouter, Request, Response

from parallelrun_api.context import Context, Ctx
from parallelrun_api.http.answers import json_answer, no_content
from parallelrun_api.routes.responses import defined, problems
from parallelrun_api.submission.upload import read_document
from parallelrun_core.answers.answer import Answer


def add_routes(
    router: APIRouter,
    path: str,
    noun: str,
    name: Any,
    *,
    service: Callable[[Context], Any],
    models: tuple[type[Answer], type[Answer]],
    shown: Callable[[Any], Answer],
    shown_now: Callable[[Context], Callable[[Any], Answer]] | None = None,
    body: dict[str, Any],
    texts: tuple[str, str, str, str],
    redefined: str = "It is defined anew.",
    removed: str,
    convertor: str = "",
    is_for_operators: bool = False,
    remove_problems: Sequence[int] = (403, 404),
) -> None:
    """Add the four routes of one kind of definitions.

    Args:
        path: of the list; names are below it.
        noun: what one of them is called, as in `batch endpoint`.
        name: describes the parameter of the path that has the name, whose alias it is.
        service: has `all`, `get`, `put` and `remove`, as `DefinitionService`.
        models: of the answer with one of them, and with the list.
        shown: makes an answer of a definition.
        shown_now: the same with what is known of its use now, for what is listed or got.
        body: what a definition is sent as, as the OpenAPI document has it.
        texts: describe how to list, get, define and delete; `redefined` and `removed` the answers.
        convertor: of the parameter of the path, where a verb may follow it.
        is_for_operators: only operators may define and delete them.
    """

    def check(context: Context, request: Request) -> None:
        if is_for_operators:
            context.operators.check(request.state.token_name)

    def list_all(context: Ctx) -> Response:
        show = shown_now(context) if shown_now else shown
        return json_answer(models[1](items=[show(each) for each in service(context).all()]))

    def get(context: Ctx, name: str = name) -> Response:
        show = shown_now(context) if shown_now else shown
        return json_answer(show(service(context).get(name)))

    async def put(request: Request, context: Ctx, name: str = name) -> Response:
        check(context, request)
        document = await read_document(request)
        definition, is_new = await run_sync(service(context).put, name, document)
        return json_answer(shown(definition), 201 if is_new else 200)

    def remove(request: Request, context: Ctx, name: str = name) -> Response:
        check(context, request)
        service(context).remove(name)
        return no_content()

    key, one = noun.replace(" ", "_"), f"{path}/{{{name.alias}{convertor}}}"
    add = router.add_api_route
    add(
        path, list_all, methods=["GET"], name=f"list_{key}s", summary=f"List {noun}s", description=texts[0],
        response_model=models[1], responses=problems(),
    )  # fmt: skip
    add(
        one, get, methods=["GET"], name=f"get_{key}", summary=f"Get a {noun}", description=texts[1],
        response_model=models[0], responses=problems(404),
    )  # fmt: skip
    add(
        one, put, methods=["PUT"], name=f"put_{key}", summary=f"Define a {noun}", description=texts[2],
        response_model=models[0], response_description=redefined, responses=defined(models[0]), openapi_extra=body,
    )  # fmt: skip
    add(
        one, remove, methods=["DELETE"], name=f"delete_{key}", summary=f"Delete a {noun}", description=texts[3],
        status_code=204, response_class=Response, response_description=removed,
        responses=problems(*remove_problems),
    )  # fmt: skip
