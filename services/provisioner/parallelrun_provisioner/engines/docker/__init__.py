"""Containers of one Docker Engine as nodes, each named like its launch.

    container.py   what is asked for, as the Engine's API has it; decides nothing else, and asks nobody
    node.py        what a node has, as a container or as a service of a swarm
    client.py      the connection, and the Engine's own words for what went wrong
    settings.py    what the operator lets containers have of their host
    fetching.py    images that the Engine lacks
    building/      images that it builds for jobs
    kit.py         the agent for nodes of other images
    engine.py      launches, finds and ends them

Swarms are asked through the same client (`engines/swarm`).
"""

from parallelrun_provisioner.engines.docker.engine import DockerEngine

__all__ = ["DockerEngine"]
