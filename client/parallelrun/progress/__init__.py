"""Shows the progress of a job: a live display on a terminal, plain lines anywhere else."""
