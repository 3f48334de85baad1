"""The job spec: every setting of a job, checked once at submission, frozen from then on.

job.py              `JobSpec`: all fields
job_checks.py       the rules between them
data_defaults.py    fields whose default differs between forms of documents
pipeline.py         `PipelineSpec`: jobs that depend on each other
pipeline_steps.py   all its steps, with those of the pipelines in it
later_inputs.py     inputs of its steps that are known only later
command.py          jobs with a shell command in place of an entry script
shell_words.py      what a command's expressions become, whatever quotes are around them
unused_fields.py    fields that have no effect because of others
fields.py           types of some fields: inputs with their values, outputs, sizes
environment.py      the field `environment`: packages, and the image of nodes
user_arguments.py   `program_arguments`: the user's part of the entry script's `sys.argv`
secrets.py          `secrets`: where a node finds each, and which of them no job can have
notify.py           `notify`, and all fields that say who is told of the end
arguments.py        what the engine puts around it
expressions.py      `${{…}}`, which refers to inputs and outputs by name
conda.py            from a conda environment to requirements of PyPI
python_versions.py  which versions of Python workers can't run in, and which may have a newer syntax
requirements.py     requirements, read once and written anew; the URLs of indexes
retry_policy.py     whether and when a mini-batch that has failed is tried again
problems.py         from pydantic's errors to problems
"""

from parallelrun_core.spec.environment import Environment
from parallelrun_core.spec.fields import Input
from parallelrun_core.spec.job import JobSpec
from parallelrun_core.spec.pipeline import PipelineSpec
from parallelrun_core.untrusted.assignment import set_field
from parallelrun_core.untrusted.document import load_document, load_json

__all__ = [
    "Environment",
    "Input",
    "JobSpec",
    "PipelineSpec",
    "load_document",
    "load_json",
    "set_field",
]
