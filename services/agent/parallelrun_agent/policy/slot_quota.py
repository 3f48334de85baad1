"""Quotas of slots and nodes: the part of an owner's quota that one node may use. Pure policy, no I/O.

Every node computes the same parts from the same list of nodes: those that work for the owner, each with its slots.
Their sum is the quota, so nodes need not ask each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from parallelrun_core.store.slot_quotas import SlotQuota


class OwnersNode(NamedTuple):
    node: str
    slots: int
    workers: int
    """Workers that it has for jobs of the owner."""


def most_workers(quota: SlotQuota, node: str, nodes: Sequence[OwnersNode]) -> int | None:
    """Return the workers that an owner may have on a node; None: any number.

    Args:
        nodes: all that work for the owner; the one that asks may be missing.
    """
    if quota == SlotQuota():
        return None
    chosen = sorted(nodes, key=lambda each: (-each.workers, each.node))[: quota.nodes]
    if quota.nodes is not None and len(nodes) >= quota.nodes and all(each.node != node for each in chosen):
        return 0
    if quota.slots is None:
        return None
    in_order = sorted(chosen, key=lambda each: each.node)
    if all(each.node != node for each in in_order):
        return 0  # until it is in the list, others have all of it
    total, before = sum(each.slots for each in in_order), 0
    for each in in_order:
        through = before + each.slots
        if each.node == node:
            return quota.slots * through // total - quota.slots * before // total
        before = through
    return 0
