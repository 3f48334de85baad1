"""Scripts and notebooks for Azure ML's v1 SDK, as they were published: `azureml.core`, `azureml.pipeline.steps`, ….

    python -m parallelrun.azureml_shim notebook.py          # a script
    import parallelrun.azureml_shim as shim; shim.install() # the first cell of a notebook

modules.py      which module has which name, and how they are found
workspace.py    workspaces, experiments, runs, computes and models
data.py         datastores and datasets, and the error for what they have not
environment.py  environments and their packages

A real `azureml` is never shadowed: where one is installed, nothing is done.
"""

from __future__ import annotations


def install() -> bool:
    """Let this process import the modules of Azure ML's v1 SDK.

    Returns:
        False: there is a real one, which is imported as ever.
    """
    from parallelrun.azureml_shim.modules import install_finder

    return install_finder()
