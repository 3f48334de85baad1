"""Runs scripts, unedited, one after the other; in the environment of the client, without anything of ours.

`python driver.py RESULTS SCRIPT…` writes how each has ended to RESULTS, after each of them.
"""

import json
import runpy
import sys
import time
import traceback


def main() -> None:
    """Run all of them."""
    results, *scripts = sys.argv[1:]
    ended = []
    for script in scripts:
        began = time.monotonic()
        error = ""
        print(f"\n===== {script}", flush=True)
        try:
            runpy.run_path(script, run_name="__main__")
        except BaseException:
            error = traceback.format_exc()
        ended.append({"script": script, "took_s": round(time.monotonic() - began, 1), "error": error[-6000:]})
        with open(results, "w") as file:
            json.dump(ended, file)


if __name__ == "__main__":
    main()
