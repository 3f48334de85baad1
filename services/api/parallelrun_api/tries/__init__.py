"""Pictures of a job, made of the history of its tries (`parallelrun_core.tries`)."""
