"""Stands for TensorFlow: a graph that takes every image for a nine."""

from typing import Any

import numpy as np


class _Tensor:
    def eval(self, feed_dict: Any, session: Any) -> Any:
        """Ten numbers, of which the last is the largest."""
        (image,) = feed_dict.values()
        assert image.shape == (1, 784)
        return np.arange(10)


class _Graph:
    def get_tensor_by_name(self, name: str) -> _Tensor:
        """A tensor of any name."""
        return _Tensor()


class Session:
    """A session with one graph."""

    def __init__(self, config: Any) -> None:
        self.graph = _Graph()


class _Saver:
    def restore(self, session: Session, path: str) -> None:
        """Restore nothing."""


class train:
    """Functions of the module of this name."""

    @staticmethod
    def import_meta_graph(path: str) -> _Saver:
        """A saver, if the file is there."""
        with open(path, "rb"):
            return _Saver()


def ConfigProto(device_count: Any) -> Any:
    """A configuration."""
    return device_count


def reset_default_graph() -> None:
    """Reset nothing."""


def disable_v2_behavior() -> None:
    """Disable nothing."""
