"""OpenTelemetry traces: what all services must know of them. Nothing of OpenTelemetry is imported.

switch.py     what the standard variables say: whether there are traces, and of which jobs
sampling.py   which traces are sent, as OpenTelemetry's own samplers decide
context.py    the ids of a span, and how they are written in `traceparent`
of_job.py     the ids of the span of a job, which follow from its records, so that everybody knows them at any time

Masters make the traces of jobs that have ended (`parallelrun_master.traces`); agents tell scripts by `TRACEPARENT`.
"""
