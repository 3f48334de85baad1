"""Services of a Docker Swarm as nodes, each with one task, and named like its launch.

    service.py   what is asked for, as the Engine's API has it; decides nothing else, and asks nobody
    engine.py    launches, finds and ends them

What a node may have of its machine, and how the Engine is asked, is that of single containers (`engines/docker`).
"""

from parallelrun_provisioner.engines.swarm.engine import SwarmEngine

__all__ = ["SwarmEngine"]
