"""The profiler's measurements in the workers of a job: read, summed up, and as a tree of calls."""
