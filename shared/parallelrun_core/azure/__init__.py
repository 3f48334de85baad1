"""Job documents, of the reference system and of our own form, read into our job spec.

findings.py       problems and notes, gathered while a document is read
forms.py          which form of document one is, without a reader
part.py           the bases of all models of documents
draft.py          the job spec in the making
v2_models.py      the fields of a v2 parallel step, component and pipeline
v2.py             a pipeline of one parallel step, or a component by itself, becomes a job
pipelines         pipelines of several steps
components.py     the component that a step refers to: in its place, in a file, or known by a name
v2_reader.py      what is read in the same way of all steps
v2_step.py        a parallel step
v2_command.py     a command step, or a command job by itself
scope.py          the context in which a step is read: its pipeline's inputs, outputs and other steps
bindings.py       inputs and outputs of a pipeline and its step, and what they are bound to
output_bindings.py   the same for outputs
named.py          names of assets: what they stand for takes their place
environment.py    the Python of the workers that a document asks for
batch_deployment.py   a batch deployment becomes a job, with the data of an invocation
invocation.py     what an invocation adds to a deployment
own_form.py       our own form of a job, as docs/job-spec.md has it
v1.py             `parallel_run_config` with the arguments of a `ParallelRunStep`
options.py        the engine's options among the user's program arguments
row_options.py    those that say how inputs are read
"""
