"""Packing: the zips and forms that are sent with requests.

`code.py` packs a folder of code and the context of an image, `files.py` data and models, `pipeline_code.py` the code of
all steps of a pipeline, and `submission.py` makes the whole request that submits a job.
"""
