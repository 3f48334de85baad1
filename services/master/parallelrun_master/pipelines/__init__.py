"""Leading a pipeline: short turns, each of which brings it as far as it can go at the moment.

turn.py              one turn, from drawing a term to leaving it
pipeline_run.py      the pipeline in one turn: what its folder says, and what is done about it
steps.py             begins a step: the job that runs it, or why there is none
reuse.py             whether an equal step has made its outputs already
fingerprints.py      what files hold, as far as that can be told without reading them
propagate.py         what the pipeline's logs take over of those of a step
condition_values.py  what the conditions of steps are about, and inputs that are values
gathering.py         what the turns of a loop have made, in one place
ending.py            how a pipeline ends: its result, its failure, and its counts
reports.py           what people read about it below `logs`

What is to be done next is decided in `policy/next_steps.py`. The truth is in the pipeline's folder and in those of its
jobs (`core/pipelines`): a turn may end anywhere, and the next one goes on.
"""
