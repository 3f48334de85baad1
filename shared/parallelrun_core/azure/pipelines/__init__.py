"""Pipelines of several steps, read into a `PipelineSpec`.

header.py      what a pipeline says of itself: labels and settings
wiring.py      its steps: their kinds, their components, and the types of their outputs
steps.py       one step: a parallel job, a command, a job of our own form or of v1
conditions.py  steps that run if a value is true, or if it is false
loops.py       steps that run several times, for each item or while a value is true;
loop_nodes.py  their documents, and loop_turns.py what changes from turn to turn
reader.py      the whole of it, and pipelines within pipelines
draft.py       the spec in the making
"""
