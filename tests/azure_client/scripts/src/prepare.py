import argparse
from pathlib import Path

parser = argparse.ArgumentParser()
parser.add_argument("--raw")
parser.add_argument("--prepared")
parser.add_argument("--least", type=int)
args = parser.parse_args()

for path in sorted(Path(args.raw).iterdir()):
    words = path.read_text().split()
    if len(words) >= args.least:
        (Path(args.prepared) / path.name).write_text(" ".join(words))
print("prepared")
