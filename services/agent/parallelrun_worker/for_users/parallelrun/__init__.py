"""For entry scripts."""


def __getattr__(name: str) -> object:
    if name != "log_metric":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}: in a worker there is only log_metric")
    from parallelrun_worker.script_api.metrics import log_metric

    return log_metric
