"""A run of MLflow for each job, where the operator has named a place for them; nothing of MLflow is imported.

mlflow_run.py      the run of a job: begun once, whoever asks first, and ended with the job
mlflow_server.py   at a tracking server, by its REST API
mlflow_folder.py   in a folder, as MLflow's file store has it

Scripts find it by the variables that MLflow's clients read.
"""
