"""Stands for a package that scripts import and don't use."""
