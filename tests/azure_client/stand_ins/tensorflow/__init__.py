"""Stands for TensorFlow, with the names of its first version."""

from tensorflow.compat.v1 import ConfigProto, Session, reset_default_graph, train

__all__ = ["ConfigProto", "Session", "reset_default_graph", "train"]
