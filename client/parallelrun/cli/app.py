"""The command line as a whole: its commands, and how their errors end.

Commands import what they need when they run, so that `--help` answers at once.
"""

from __future__ import annotations

import copy
import os
import sys
from collections.abc import Sequence
from importlib.metadata import version
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from typer.core import TyperGroup

from parallelrun.cli.admin import admin, redis_acl
from parallelrun.cli.asset import asset_kinds, commands_for
from parallelrun.cli.azure_env import azure_env
from parallelrun.cli.batch_endpoint import batch_deployment, batch_endpoint
from parallelrun.cli.cluster import down, up
from parallelrun.cli.compute import compute
from parallelrun.cli.data_preview import add_preview
from parallelrun.cli.datastore import datastore
from parallelrun.cli.doctor import doctor
from parallelrun.cli.exit_codes import ExitCode, Terminated, raise_on_sigterm
from parallelrun.cli.init import init
from parallelrun.cli.job import job
from parallelrun.cli.limit import limit
from parallelrun.cli.node import node
from parallelrun.cli.plan import plan_command
from parallelrun.cli.quota import quota, usage
from parallelrun.cli.run import run_command
from parallelrun.cli.schedule import schedule
from parallelrun.cli.server import Commands
from parallelrun.cli.token import token
from parallelrun.cli.tune import tune_command

if TYPE_CHECKING:
    from parallelrun.embedded.begun_template import BegunTemplate

_PANELS: Final = ("On this machine", "On a cluster", "Names", "For operators")
_HERE, _CLUSTER, _NAMES, _OPERATORS = _PANELS


class _PanelledGroup(TyperGroup):
    """A group that lists its commands in panels. Typer's own does so with rich only, which takes long to import."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        width = max(map(len, self.commands))
        groups_first = sorted(self.commands.items(), key=lambda named: not isinstance(named[1], TyperGroup))
        for panel in _PANELS:
            with formatter.section(panel):
                formatter.write_dl(
                    [
                        (name.ljust(width), command.get_short_help_str(formatter.width - width - 6))
                        for name, command in groups_first
                        if getattr(command, "rich_help_panel", None) == panel
                    ]
                )


app = Commands(
    name="parallelrun",
    cls=_PanelledGroup,
    help="Run a Python function over many files or table rows.\n\n"
    "`run` runs a job here, on this machine; `job create` sends it to a server.",
    epilog="Exit codes: 0 completed, 1 usage, 2 invalid spec, 3 job failed, 4 job canceled, 5 server unreachable, "
    "6 timeout, 130 interrupted, 143 terminated.",
    context_settings={"help_option_names": ["--help", "-h"]},
    pretty_exceptions_enable=False,
)
app.command("run", rich_help_panel=_HERE)(run_command)
app.command("init", rich_help_panel=_HERE)(init)
app.command("plan", rich_help_panel=_HERE)(plan_command)
app.command("tune", rich_help_panel=_HERE)(tune_command)
app.command("doctor", rich_help_panel=_HERE)(doctor)
app.command("up", rich_help_panel=_HERE)(up)
app.command("down", rich_help_panel=_HERE)(down)
app.add_typer(job, name="job", rich_help_panel=_CLUSTER)
app.add_typer(schedule, name="schedule", rich_help_panel=_CLUSTER)
app.add_typer(batch_endpoint, name="batch-endpoint", rich_help_panel=_CLUSTER)
app.add_typer(batch_deployment, name="batch-deployment", rich_help_panel=_CLUSTER)
app.add_typer(node, name="node", rich_help_panel=_CLUSTER)
app.add_typer(limit, name="limit", rich_help_panel=_CLUSTER)
app.command("usage", rich_help_panel=_CLUSTER)(usage)
app.command("azure-env", rich_help_panel=_CLUSTER)(azure_env)
app.add_typer(admin, name="admin", rich_help_panel=_OPERATORS)
app.add_typer(compute, name="compute", rich_help_panel=_OPERATORS)
app.add_typer(quota, name="quota", rich_help_panel=_OPERATORS)
app.add_typer(token, name="token", rich_help_panel=_OPERATORS)
app.command("redis-acl", rich_help_panel=_OPERATORS)(redis_acl)
for kind in asset_kinds():
    group = commands_for(kind)
    if kind == "data":
        add_preview(group)
    app.add_typer(group, name=kind, rich_help_panel=_NAMES)
app.add_typer(datastore, name="datastore", rich_help_panel=_NAMES)


def _show_version(is_requested: bool) -> None:
    if is_requested:
        typer.echo(version("parallelrun"))
        raise typer.Exit


@app.callback()
def _options(
    _version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    pass


def _with_commands_of(words: Sequence[str]) -> typer.Typer:
    """The command line with the one command, or group of commands, that the first word names; else all of it.

    Typer reads the signature of each command that it is given: for all of them, 0.09 s of the 0.31 s of CPU that
    `parallelrun run --help` took.
    """
    named = copy.copy(app)
    named.registered_commands = [each for each in app.registered_commands if each.name in words[:1]]
    named.registered_groups = [each for each in app.registered_groups if each.name in words[:1]]
    return named if named.registered_commands or named.registered_groups else app


def run(argv: Sequence[str] | None = None, template: BegunTemplate | None = None) -> int:
    """Run one command line; returns the exit code. Errors are printed, not raised.

    Args:
        template: the template of the services of a cluster that the command starts, if one was begun.
    """
    terminations = raise_on_sigterm()
    try:
        command_line = _with_commands_of(sys.argv[1:] if argv is None else argv)
        code = command_line(args=argv, standalone_mode=False, obj=template)
        sys.stdout.flush()
    except Terminated:
        return ExitCode.TERMINATED
    except (KeyboardInterrupt, typer.Abort):
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        # The reader of our output has closed it. Python would print another error when it exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.USAGE
    except Exception as error:
        from parallelrun.cli.errors import report

        return report(error)
    if code == ExitCode.INTERRUPTED and terminations:  # any interrupt has the exit code of Ctrl-C for typer
        return ExitCode.TERMINATED
    return code if isinstance(code, int) else ExitCode.OK
