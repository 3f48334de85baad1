from pathlib import Path


def init():
    print("model loaded")


def run(mini_batch):
    return [f"{Path(path).name},{len(Path(path).read_text().split())}" for path in mini_batch]
