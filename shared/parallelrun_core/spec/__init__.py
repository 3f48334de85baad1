"""The job spec: every setting of a job, checked once at submission, frozen from then on.

job.py          `JobSpec`: all fields, and what they must be together
fields.py       what some of the fields are made of: inputs, outputs, environment, sizes
arguments.py    `program_arguments` and what the engine adds to them: the entry script's `sys.argv`
expressions.py  `${{…}}`, which refers to inputs and outputs by name
conda.py        what of a conda environment can be installed with packages of PyPI
document.py     from YAML or JSON to plain data, changes from a command line, errors as problems
"""

from parallelrun_core.spec.document import load_document, load_json, set_field
from parallelrun_core.spec.fields import Environment, Input
from parallelrun_core.spec.job import JobSpec

__all__ = [
    "Environment",
    "Input",
    "JobSpec",
    "load_document",
    "load_json",
    "set_field",
]
