"""MLflow for scripts: a run for the job, which its processes find without a server and without a token of anybody's.

imports.py    begins it when a script imports `mlflow`; nothing happens in scripts that don't
server.py     a tracking server on 127.0.0.1, in the process itself, for the calls of MLflow's client
answers.py    what each call does, and its answer

Metrics, params and tags go to the metrics of the process, artifacts to a folder among the job's logs.
"""
