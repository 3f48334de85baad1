"""Splits the lines of all requests into answers and errors, as OpenAI's Batch API has them in two files."""

import json
import sys
from collections import Counter


def is_answered(line):
    return line["error"] is None and line["response"]["status_code"] < 400


def main(lines, output, errors):
    counts = Counter()
    names = Counter()
    with open(lines) as source, open(output, "w") as answered, open(errors, "w") as failed:
        for text in source:
            line = json.loads(text)
            names[line["custom_id"]] += 1
            is_good = is_answered(line)
            counts["completed" if is_good else "failed"] += 1
            (answered if is_good else failed).write(text)
    twice = sorted(str(name) for name, count in names.items() if count > 1)
    if twice:
        print(f"custom_id of more than one request: {', '.join(twice[:10])}", file=sys.stderr)
    print(f"total: {counts.total()}, completed: {counts['completed']}, failed: {counts['failed']}")


main(*sys.argv[1:])
