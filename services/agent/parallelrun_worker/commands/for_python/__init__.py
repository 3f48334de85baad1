"""The first folder of PYTHONPATH for the programs of a command."""
