"""Jobs as Python objects, in the words of Azure ML's two SDKs. `Client.jobs.create` takes them as they are.

Each is a way to write a document: v2's `parallel_run_function` a parallel component with its inputs, v1's
`ParallelRunStep` a `parallel_run_config` with its arguments. What the documents mean, and all checks, are in
`parallelrun_core.reading`.
"""
