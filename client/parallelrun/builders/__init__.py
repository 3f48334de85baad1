"""Jobs as Python objects, as in Azure ML's two SDKs. `Client.jobs.create` accepts them.

Each of them describes a job file: v2's `parallel_run_function` a parallel component with its inputs, v1's
`ParallelRunStep` a `parallel_run_config` with its arguments. The meaning of these files, and all checks, are in
`parallelrun_core.intake.reading`.
"""
