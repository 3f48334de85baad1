"""A second facade of the API, for Azure ML's own Python client (`azure-ai-ml`), unmodified.

It translates: what the client asks for becomes a job, an asset, a file or a refusal of the rest of the API, and the
answers become what the client expects. It decides nothing, and nothing else knows of it: without this folder, the API
is what it is. Who may do what is as for all other routes: `auth.py` admits requests by tokens that are made here of the
client's own (`credentials.py`), behind the same checks of hosts, sizes and connections.

All of it is below one prefix, `/azure`: the client is told so by `AZUREML_DEV_URL_MFE` (`parallelrun azure-env`).
"""
