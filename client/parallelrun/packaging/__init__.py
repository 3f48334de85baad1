"""Packing: the zips and forms that are sent with requests.

`code.py` packs code, the context of an image, data and models; `submission.py` makes the whole request that submits a
job, with the code of all steps of a pipeline in one zip.
"""
