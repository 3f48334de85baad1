"""The history of a job's tries in memory: read from its folder as that grows, and needing nothing else.

`snapshot` keeps it in a file beside the logs that it was read from: whoever looks at the job next reads only that, and
what was added since.
"""
