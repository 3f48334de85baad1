"""`parallelrun batch-endpoint …` and `parallelrun batch-deployment …`"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from parallelrun.cli import completion
from parallelrun.cli.definitions import add_delete, add_list, add_show
from parallelrun.cli.job_follow import follow_job
from parallelrun.cli.output import FormatOption, OutputFormat, say_notes, show_change, show_list, show_one
from parallelrun.cli.server import Client, Commands

batch_endpoint = Commands(lambda client: client.batch_endpoints, help="Jobs to call by name with your own data.")
batch_deployment = Commands(help="The deployments of batch endpoints.")

Name = Annotated[str, typer.Argument(metavar="NAME", show_default=False)]
OneEndpoint = Annotated[str, typer.Argument(metavar="NAME", show_default=False, autocompletion=completion.endpoints)]
NameOption = Annotated[str, typer.Option("--name", "-n", help="Its name, in place of that in the file.")]
OfEndpoint = Annotated[
    str,
    typer.Option(
        "--endpoint-name",
        "-e",
        metavar="ENDPOINT",
        help="The batch endpoint.",
        show_default=False,
        autocompletion=completion.endpoints,
    ),
]
FileOption = Annotated[
    Path | None, typer.Option("--file", "-f", help="The document, as YAML or JSON.", show_default=False)
]


@batch_endpoint.command("create")
def create_endpoint(
    client: Client, file: FileOption = None, name: NameOption = "", form: FormatOption = OutputFormat.TABLE
) -> None:
    """Define a batch endpoint, or define it anew, and print its name."""
    created = client.batch_endpoints.create(file, name=name)
    show_change(created, form, name=created.name)


add_list(
    batch_endpoint,
    "List all batch endpoints.",
    [
        "name",
        ("DEFAULT", lambda each: each.default_deployment),
        ("DEPLOYMENTS", lambda each: ", ".join(each.deployments)),
        "description",
    ],
)


add_show(
    batch_endpoint,
    "Show one batch endpoint.",
    lambda endpoint: [
        ("name", endpoint.name),
        ("description", endpoint.description),
        ("default", endpoint.default_deployment),
        ("deployments", ", ".join(endpoint.deployments)),
        ("modified", endpoint.modified),
    ],
    completion.endpoints,
)


add_delete(
    batch_endpoint,
    "Forget a batch endpoint with its deployments. Their jobs stay.",
    completion.endpoints,
)


@batch_endpoint.command()
def invoke(
    client: Client,
    name: OneEndpoint,
    *,
    data: Annotated[
        list[str] | None,
        typer.Option("--input", metavar="[NAME=]DATA", help="A path on the server, a URL, a data asset. Repeatable."),
    ] = None,
    input_type: Annotated[str, typer.Option(help="uri_folder, uri_file or mltable.")] = "",
    deployment_name: Annotated[str, typer.Option("--deployment-name", "-d", help="Not the default one.")] = "",
    output_path: Annotated[str, typer.Option(help="The folder of the output.")] = "",
    output_file_name: Annotated[str, typer.Option(help="The file with the rows of the output.")] = "",
    mini_batch_size: Annotated[str, typer.Option(help="Not that of the deployment.")] = "",
    instance_count: Annotated[int | None, typer.Option(min=1, help="Not that of the deployment.")] = None,
    job_name: Annotated[str, typer.Option(help="A label of the job.")] = "",
    idempotency_key: Annotated[
        str, typer.Option(metavar="KEY", help="Invoking again with the same key gives the same job.")
    ] = "",
    follow: Annotated[bool, typer.Option("--stream", help="Follow the job until it ends.")] = False,
    form: FormatOption = OutputFormat.TABLE,
) -> None:
    """Make a job of a deployment and data, and print the job's id."""
    from parallelrun_core.storage.supported import absolute_path

    settings: dict[str, Any] = {
        "output_path": absolute_path(output_path, Path.cwd()) if output_path else "",
        "output_file_name": output_file_name,
        "mini_batch_size": int(mini_batch_size) if mini_batch_size.isdecimal() else mini_batch_size,
        "instance_count": instance_count,
        "job_name": job_name,
    }
    job = client.batch_endpoints.invoke(
        name,
        deployment_name=deployment_name,
        idempotency_key=idempotency_key or None,
        **_inputs(data or [], input_type, _texts_of(client, name, deployment_name) if data else frozenset()),
        **settings,
    )
    show_change(job, form, name=job.id)
    if follow:
        raise typer.Exit(follow_job(client, job))


def _texts_of(client: Client, endpoint: str, deployment_name: str) -> frozenset[str]:
    """Return the names of the inputs that are texts, and no paths; none of what there isn't, which the server says."""
    from parallelrun.errors import NotFound

    try:
        called = deployment_name or client.batch_endpoints.get(endpoint).default_deployment
        inputs = client.batch_deployments.get(called, endpoint).inputs if called else {}
    except NotFound:
        return frozenset()
    return frozenset(name for name, each in inputs.items() if each.type == "string")


def _inputs(pairs: list[str], kind: str, texts: frozenset[str]) -> dict[str, Any]:
    """Return what the options give, as the client takes it.

    Args:
        texts: the inputs that are no paths.
    """
    from parallelrun_core.spec.fields import NAME
    from parallelrun_core.storage.supported import absolute_path

    if kind and not pairs:
        raise typer.BadParameter("it is the type of what --input names", param_hint="--input-type")

    def of(place: str) -> Any:
        path = absolute_path(place, Path.cwd())
        return {"path": path, "type": kind} if kind else path

    named: dict[str, Any] = {}
    for each in pairs:
        name, equals, place = each.partition("=")
        if equals and NAME.fullmatch(name):
            named[name] = place if name in texts else of(place)
        elif len(pairs) == 1:
            return {"data": of(each)}
        else:
            raise typer.BadParameter(f"{each!r} is not NAME=DATA, which several inputs must be")
    return {"inputs": named}


@batch_deployment.command("create")
def create_deployment(
    client: Client,
    *,
    file: Annotated[Path, typer.Option("--file", "-f", help="The document, as YAML or JSON.", show_default=False)],
    name: NameOption = "",
    endpoint_name: OfEndpoint = "",
    set_default: Annotated[bool, typer.Option("--set-default", help="Invoke it when a request names none.")] = False,
    form: FormatOption = OutputFormat.TABLE,
) -> None:
    """Define a deployment, or define it anew, and print its name."""
    created = client.batch_deployments.create(file, name=name, endpoint_name=endpoint_name, set_default=set_default)
    say_notes(created.notes)
    show_change(created, form, name=created.name)


@batch_deployment.command("list")
def list_deployments(client: Client, endpoint_name: OfEndpoint, form: FormatOption = OutputFormat.TABLE) -> None:
    """List the deployments of a batch endpoint."""
    show_list(
        client.batch_deployments.list(endpoint_name),
        form,
        columns=["name", "type", "modified", "description"],
    )


@batch_deployment.command("show")
def show_deployment(
    client: Client, name: Name, endpoint_name: OfEndpoint, form: FormatOption = OutputFormat.TABLE
) -> None:
    """Show one deployment."""
    deployment = client.batch_deployments.get(name, endpoint_name)
    inputs = [
        f"{each}: {slot.type}" + (f" ({slot.default})" if slot.default is not None else "")
        for each, slot in deployment.inputs.items()
    ]
    lines = [
        ("name", deployment.name),
        ("endpoint", deployment.endpoint),
        ("type", deployment.type),
        ("description", deployment.description),
        ("inputs", "\n".join(inputs)),
        ("modified", deployment.modified),
        ("notes", "\n".join(deployment.notes)),
    ]
    show_one(deployment, form, name=deployment.name, lines=lines)


@batch_deployment.command("delete")
def delete_deployment(client: Client, name: Name, endpoint_name: OfEndpoint) -> None:
    """Forget a deployment. Its jobs stay."""
    client.batch_deployments.delete(name, endpoint_name)
