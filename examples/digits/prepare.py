"""Creates the example's input: scanned handwritten digits as PNG files, and a classifier trained on the other half.

    data/images/0000.png …    what the job reads
    data/labels.csv           which digit each of them is
    data/model.joblib         the classifier

The digits are the 1,797 that come with scikit-learn. Running this again changes nothing.
"""

from __future__ import annotations

import csv
import os
import shutil
import sys
from pathlib import Path

DATA = Path(__file__).parent / "data"


def prepare(data: Path = DATA) -> bool:
    """Create the data unless it exists; returns whether there was something to do."""
    if data.is_dir():
        return False
    # Renamed at the end, so that an interrupted run leaves nothing that looks finished.
    temporary = data.with_name(f"{data.name}.{os.getpid()}.new")
    shutil.rmtree(temporary, ignore_errors=True)
    try:
        _make(temporary)
        temporary.rename(data)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return True


def _make(folder: Path) -> None:
    import joblib
    from PIL import Image
    from sklearn.datasets import load_digits
    from sklearn.svm import SVC

    digits = load_digits()
    # The scans have 17 shades; a PNG has 256.
    images = (digits.images * 15).astype("uint8")
    half = len(images) // 2
    (folder / "images").mkdir(parents=True)
    with (folder / "labels.csv").open("w", newline="") as file:
        labels = csv.writer(file)
        for number, (image, digit) in enumerate(zip(images[half:], digits.target[half:], strict=True)):
            name = f"{number:04}.png"
            Image.fromarray(image).save(folder / "images" / name)
            labels.writerow([name, digit])
    model = SVC(gamma=0.001).fit(images[:half].reshape(half, -1) / 15, digits.target[:half])
    joblib.dump(model, folder / "model.joblib")


if __name__ == "__main__":
    print("created" if prepare() else "already there:", DATA, file=sys.stderr)
