"""Other systems, doing the same work: Ray Data, Ray actors, Dask, Celery on Redis, joblib.

They are in an environment of their own, which `make bench-rivals` builds from `requirements.txt` in this folder. Each
is a module with one context manager, `ready(work, scratch, redis_server)`: inside it two workers are up and have done
something, and what it yields takes mini-batches and returns their rows as they come. `runner.py` measures all of them
alike in the rivals' environment; `compare.py` calls it from ours.
"""
