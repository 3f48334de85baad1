"""Computes: named pools of like nodes, and what engine provides them.

    definition.py   what all computes have: how many nodes, how long an idle one stays, what a node is
    kinds/          a module for each engine: the fields that only its nodes have
    launch.py       one node that is asked for: its id, and how its agent is started

A job names a compute; nodes of other computes don't work for it. Definitions are without secrets: who asks an engine
for nodes, the provisioner, has credentials of its own.
"""
