"""Images that an Engine builds for jobs, by Dockerfiles of theirs.

builds.py    which are built now, which are there, and which have failed
building.py  one build, in a thread
sent.py      what is sent to the Engine
log.py       what it says, in the logs of all jobs that wait for it
"""

from parallelrun_provisioner.engines.docker.building.builds import Builds

__all__ = ["Builds"]
