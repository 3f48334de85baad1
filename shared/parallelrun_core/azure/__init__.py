"""The reference system's own documents, read into our job spec: one model inside, whatever the spelling.

findings.py       what is wrong, and what has to be said, gathered while a document is read
v2_models.py      the fields of a v2 parallel step, component and pipeline
v2.py             a pipeline of one parallel step, or a parallel component, becomes a job
v2_step.py        the step of that
bindings.py       inputs and outputs of a pipeline and its step, and what they are bound to
environment.py    what a document says about the Python of its workers
v1.py             `parallel_run_config` with the arguments of a `ParallelRunStep`
options.py        options of the engine among the user's program arguments
"""
