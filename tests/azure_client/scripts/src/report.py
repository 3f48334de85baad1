import argparse
from pathlib import Path

parser = argparse.ArgumentParser()
parser.add_argument("--scores")
parser.add_argument("--report")
args = parser.parse_args()

scores = Path(args.scores)
files = [scores] if scores.is_file() else sorted(path for path in scores.rglob("*") if path.is_file())
lines = [line for path in files for line in path.read_text().splitlines()]
Path(args.report, "report.txt").write_text(f"{len(lines)} files\n")
