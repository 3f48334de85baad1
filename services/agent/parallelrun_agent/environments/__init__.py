"""The Python that a job's workers run on: the agent's own, or one that is built for what the job asks for."""
