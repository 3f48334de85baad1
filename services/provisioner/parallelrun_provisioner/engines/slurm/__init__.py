"""Nodes from Slurm: a batch job for each, named as its launch, by Slurm's own commands.

    engine.py     launches, lists and ends them
    batch.py      the arguments of sbatch and the script: everything that is sent
    listing.py    what squeue says, read
    words.py      Slurm's reasons and errors in plain words
    commands.py   runs a command of Slurm

The provisioner is the user whose jobs they are: nothing here needs root, an accounting database or slurmrestd.
"""

from parallelrun_provisioner.engines.slurm.engine import SlurmEngine

__all__ = ["SlurmEngine"]
