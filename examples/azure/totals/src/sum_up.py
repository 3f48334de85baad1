"""Sums up a table of sales by store."""

import argparse
import csv
import os
from collections import Counter

parser = argparse.ArgumentParser()
parser.add_argument("--sales")
parser.add_argument("--to")
parser.add_argument("--least", type=int, default=0)
args = parser.parse_args()

totals = Counter()
with open(args.sales, newline="") as file:
    for row in csv.DictReader(file):
        totals[row["store"]] += int(row["sold"])

with open(args.to, "w", newline="") as file:
    writer = csv.writer(file)
    writer.writerow(["store", "sold"])
    writer.writerows(item for item in sorted(totals.items()) if item[1] >= args.least)

os.makedirs("outputs", exist_ok=True)
with open("outputs/stores.txt", "w") as file:
    file.writelines(f"{store}\n" for store in totals)
