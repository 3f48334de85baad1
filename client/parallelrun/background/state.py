"""The files by which commands find the cluster in the background, and what they say."""

from __future__ import annotations

from pathlib import Path

import msgspec

from parallelrun.background.lock import is_locked
from parallelrun_core.service.state_folder import state_folder


class BackgroundCluster(msgspec.Struct, kw_only=True, frozen=True):
    url: str
    token: str
    pid: int
    home: str
    started: str
    nodes: int = -1
    """Number of its nodes on this machine; -1: a process of an earlier release, which can't add any."""
    redis_url: str = ""
    """URL at which nodes of other machines reach its Redis server; empty: nowhere."""


def lock_file() -> Path:
    """The file that the background process holds locked."""
    return state_folder() / "cluster.lock"


def state_file() -> Path:
    """The file in which the background process says how to reach it."""
    return state_folder() / "cluster.json"


def requested_nodes_file() -> Path:
    """The file with the number of nodes that the background process is to have."""
    return state_folder() / "cluster.nodes"


def running() -> BackgroundCluster | None:
    """The cluster in the background, if there is one that is ready."""
    if not is_locked(lock_file()):
        return None
    try:
        return msgspec.json.decode(state_file().read_bytes(), type=BackgroundCluster)
    except (FileNotFoundError, msgspec.DecodeError):
        return None  # it is being started or stopped
