"""Support for Azure ML's own client on this machine, so that it reaches a ParallelRun server:
`parallelrun azure-env`.
"""
