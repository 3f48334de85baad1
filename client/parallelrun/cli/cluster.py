"""`parallelrun up` and `parallelrun down`: a cluster in the background on this machine."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from parallelrun.cli.job_file_options import Processes
from parallelrun.cli.output import FormatOption, OutputFormat, say, show

if TYPE_CHECKING:
    from parallelrun.background.state import BackgroundCluster


def up(
    context: typer.Context,
    *,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port of the API on 127.0.0.1, or the next free one; 0: any.")
    ] = 8080,
    nodes: Annotated[int, typer.Option(min=0, help="Number of nodes on this machine.")] = 1,
    processes: Processes = None,
    root: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder for its data.", show_default="below the home folder")
    ] = None,
    listen: Annotated[
        str,
        typer.Option(
            metavar="HOST[:PORT]",
            help="Name or address of this machine by which nodes of other machines reach the cluster, with TLS.",
        ),
    ] = "",
    site: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            show_default="PARALLELRUN_SITE",
            help="Site file: what stands for names of other people's documents.",
        ),
    ] = None,
    form: FormatOption = OutputFormat.TABLE,
) -> None:
    """Start a cluster in the background on this machine. With --nodes, a running one gets more.

    Prints the URL of its API.
    """
    from parallelrun.background.state import running

    cluster = running()
    if cluster:
        say(f"A cluster is already running (since {cluster.started}); its data is in {cluster.home}.")
        if _given(context, "nodes"):
            _ask_for_nodes(cluster, nodes)
        if ignored := _given(context, "port", "processes", "root", "listen", "site"):
            say(f"note: {', '.join(ignored)}: without effect on it; stop it first, with `parallelrun down`.")
    else:
        _use_site(site)
        cluster = _start(root, port=port, nodes=nodes, processes=processes, listen=listen)
    facts = {"url": cluster.url, "folder": cluster.home, "pid": cluster.pid, "started": cluster.started}  # no token
    show(facts, form, lines=(cluster.url,))
    _say_what_is_next(cluster)


def _use_site(site: Path | None) -> None:
    """Let the services find a site file. What is wrong with it is said here, and not in a log."""
    from parallelrun_core.assets.site import VARIABLE, read_site, site_file_named

    file = site or site_file_named()
    if file is not None:
        read_site(file.absolute())
        os.environ[VARIABLE] = str(file.absolute())


def _start(root: Path | None, *, port: int, nodes: int, processes: int | None, listen: str) -> BackgroundCluster:
    from parallelrun.embedded.background import start
    from parallelrun.embedded.cluster import next_free_port
    from parallelrun_core.service.state_folder import state_folder

    home = (root or state_folder() / "cluster").absolute()
    if (free_port := next_free_port(port)) != port:
        say(f"note: port {port} is taken: the API is at port {free_port}")
    cluster = start(home, port=free_port, nodes=nodes, processes=processes, listen=listen)
    here = f"{nodes} node{'' if nodes == 1 else 's'}{' on this machine' if listen else ''}"
    say(f"A cluster is running: API, master, concatenator, provisioner and {here}; its data is in {home}.")
    return cluster


def _say_what_is_next(cluster: BackgroundCluster) -> None:
    import shlex

    from parallelrun.client import Client
    from parallelrun.embedded.services import ClusterLayout
    from parallelrun.top.page import sign_in_address

    if cluster.redis_url:
        layout = ClusterLayout(home=Path(cluster.home))
        agent = ("--root", layout.root, "--redis-secret-file", layout.agent_secret, "--redis-url", cluster.redis_url)
        say(f"add a node:    {shlex.join(['parallelrun-agent', *map(str, agent)])}")
    with Client(cluster.url, cluster.token) as client:
        say(f"open its page: {sign_in_address(client)}")
    say("submit a job:  parallelrun job create -f job.yml --stream")
    say("stop it:       parallelrun down")


def _ask_for_nodes(cluster: BackgroundCluster, nodes: int) -> None:
    from parallelrun.client import Client
    from parallelrun.embedded.background import add_nodes
    from parallelrun_core.figures import counted

    if nodes < cluster.nodes:
        say(f"note: --nodes: nodes are only added, and it has {cluster.nodes}; for fewer, `parallelrun down` first.")
    elif nodes > cluster.nodes:
        with Client(cluster.url, cluster.token) as client:
            add_nodes(cluster, nodes, lambda: {node.node for node in client.nodes.list() if node.is_alive})
        say(f"It has {counted(nodes, 'node')} now, instead of {max(cluster.nodes, 0)}.")


def _given(context: typer.Context, *names: str) -> list[str]:
    """The options of these that were written on the command line."""
    return [f"--{name}" for name in names if getattr(context.get_parameter_source(name), "name", "") == "COMMANDLINE"]


def down() -> None:
    """Stop the cluster that `up` started. Its data stays, and its jobs continue when it is started again."""
    from parallelrun.azure import environment
    from parallelrun.background.state import running
    from parallelrun.embedded.background import stop

    cluster = running()
    say("The cluster has stopped." if stop() else "No cluster is running.")
    if cluster is not None:
        environment.stop(cluster.url)  # what `azure-env` has started leads nowhere now
