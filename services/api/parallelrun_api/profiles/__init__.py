"""What the profiler has measured in the workers of a job: read, summed up, and as a tree of calls."""
