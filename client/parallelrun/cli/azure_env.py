"""`parallelrun azure-env`: what a shell needs for Azure ML's own Python client."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from parallelrun.cli.output import FormatOption, OutputFormat, dump, say
from parallelrun.cli.server import Token, Url


def azure_env(
    url: Url = "",
    token: Token = "",
    *,
    config: Annotated[
        bool, typer.Option("--config", help="Also write a config.json here, unless there is one.")
    ] = False,
    stop: Annotated[bool, typer.Option("--stop", help="End what was started for this server.")] = False,
    form: FormatOption = OutputFormat.TABLE,
) -> None:
    """Print what makes azure-ai-ml use this server. In a shell: eval "$(parallelrun azure-env)"."""
    import shlex

    from parallelrun.azure import environment
    from parallelrun.client import server_to_use

    if stop and config:
        raise typer.BadParameter("--stop ends the use of this server, and --config begins it: leave one of them out")
    url, token = server_to_use(url, token)
    if stop:
        say("It has stopped." if environment.stop(url) else "Nothing was running for this server.")
        return
    variables = environment.variables(url, token)
    if config:
        say(f"the workspace is in {environment.write_config(Path.cwd())}")
    if form in (OutputFormat.JSON, OutputFormat.YAML):
        dump(variables, form)
        return
    for name, value in variables.items():
        print(f"export {name}={shlex.quote(value)}")
    say('set it in this shell:  eval "$(parallelrun azure-env)"')
