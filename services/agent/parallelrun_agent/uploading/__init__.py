"""Brings what scripts write into folders of a store there, before the mini-batch that has written it counts as done.

A worker has neither our libraries nor any credentials, so it writes into local folders of its own. At the end of a
run() that has succeeded, it moves what is there into a folder of that mini-batch (`parallelrun_worker/outputs.py`): it
alone knows where one mini-batch ends, and it goes on with the next one at once. The agent uploads that folder, and only
then commits the outcome. What a run() that failed has written goes nowhere.

uploader.py    uploads folders, several files at once, and tries again while the store is away
uploading.py   what the job machine asks for, and what it is told

Which local folder of a worker stands for which output is in `workers/output_places.py`.
"""
