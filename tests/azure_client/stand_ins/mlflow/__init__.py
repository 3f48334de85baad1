"""Stands for MLflow: models are text files, and predict noughts."""

from mlflow import sklearn

__all__ = ["autolog", "sklearn"]


def autolog() -> None:
    """Log nothing."""
