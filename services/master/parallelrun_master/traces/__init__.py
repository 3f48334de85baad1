"""Traces: what OpenTelemetry calls the story of one job, sent to a collector when the job has ended.

A trace is in the outbox (`parallelrun_master.outbox`) from the moment before the end is recorded. It is made from the
job's folder alone (`spans`), so nothing is measured for it and no job waits for it. A process sends those that are due
(`delivery`, `exporting`), by OpenTelemetry's own library, which only that process imports. Which tries are in it is
decided in `parallelrun_master.policy.traced_tries`.
"""
