"""Nodes from real engines: a job from its request to its output, and what remains of it when nodes die.

    target.py       what a test needs of an engine
    targets/        a module for each engine that can be had here
    nodes.py        a cluster whose nodes an engine provides
    acceptance.py   the main job, byte by byte, and how soon its first run() begins
    deployed/       what operators install on an engine
    chaos.py        half of the nodes are killed again and again, with the provisioner and Redis

`make engine-test E=docker`, or `python -m tests.engines docker`.
"""
