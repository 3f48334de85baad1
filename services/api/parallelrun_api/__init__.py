"""The REST API: submit jobs, follow them, fetch their outputs."""

from parallelrun_api.http.lazy_fastapi import unbuilt_models

with unbuilt_models():  # before any other module of ours imports it
    import fastapi.routing  # noqa: F401 - for all of them
