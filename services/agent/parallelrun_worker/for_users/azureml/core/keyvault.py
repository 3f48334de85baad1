"""`Keyvault`, under the name that scripts import it by."""

from parallelrun_worker.shims.workspace import Keyvault

__all__ = ["Keyvault"]
