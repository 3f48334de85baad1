"""`Model`, under the name that scripts import it by."""

from parallelrun_worker.shims.model import Model

__all__ = ["Model"]
