"""Nodes from Kubernetes: a Pod for each, named as its launch.

    pod.py         the manifest: everything that is sent; pure
    listing.py     what the API says of Pods, read; pure
    settings.py    what the operator lets Pods have of their cluster
    access.py      where the API is, and who we are there: the mounted service account, or a kubeconfig
    api.py         the few calls, by plain REST
    engine.py      launches, lists and ends them

Plain REST by httpx, which is there already: create, list and delete are all that is needed, in core/v1, which every
release since 1.20 has. The official client would add 60 MB for that.
"""

from parallelrun_provisioner.engines.kubernetes.engine import KubernetesEngine

__all__ = ["KubernetesEngine"]
