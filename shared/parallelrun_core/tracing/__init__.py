"""OpenTelemetry traces: what all services must know of them. Nothing of OpenTelemetry is imported.

switch.py     what the standard variables say: whether there are traces, and of which jobs
sampling.py   which traces are sent, as OpenTelemetry's own samplers decide
context.py    the ids of a span, and how they are written in `traceparent`

Masters make the traces of jobs that have ended (`parallelrun_master.destinations.traces`); agents tell scripts by
`TRACEPARENT`.
"""
