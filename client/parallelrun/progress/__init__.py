"""Shows how far a job is: a live display on a terminal, plain lines anywhere else."""
