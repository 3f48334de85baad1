"""Submits documents with the client, unedited, in the environment of the client, without anything of ours.

`python submit.py CASES RESULTS` reads a list of `{"case", "file"}` and writes, after each, how it was answered.
"""

import json
import os
import runpy
import sys
import traceback
from pathlib import Path

from azure.ai.ml import MLClient, load_component, load_data, load_job
from azure.core.exceptions import HttpResponseError
from azure.identity import DefaultAzureCredential

LOADERS = {"data": load_data, "components": load_component}


def answered(ml_client, case):
    """The name of the job that a document has become, or why it has become none."""
    file = Path(case["file"])
    os.chdir(file.parent)
    try:
        if case.get("register"):
            entity = LOADERS[case["register"]](str(file))
            return {"job": getattr(ml_client, case["register"]).create_or_update(entity).name}
        job = runpy.run_path(str(file))["job"] if file.suffix == ".py" else load_job(str(file))
        return {"job": ml_client.jobs.create_or_update(job).name}
    except HttpResponseError as error:
        details = error.error.details if error.error is not None else None
        problems = [[each.target or "", each.message] for each in details or []]
        return {"refused": problems or [["", error.message]]}
    except Exception as error:
        return {"kept_back": f"{type(error).__name__}: {error}"[:2000], "trace": traceback.format_exc()[-3000:]}


def main():
    """Submit all of them."""
    cases, results = (Path(argument).absolute() for argument in sys.argv[1:])
    ml_client = MLClient.from_config(credential=DefaultAzureCredential())
    answers = []
    for case in json.loads(cases.read_text()):
        answers.append({"case": case["case"], **answered(ml_client, case)})
        results.write_text(json.dumps(answers, indent=1))


if __name__ == "__main__":
    main()
