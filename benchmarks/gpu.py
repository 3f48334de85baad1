"""A GPU kept busy: images through residual networks, texts through a language model; all weights are random.

`busy` is the share of the time in which the GPU computes, as its driver counts it, from the first run() to the last
commit. Images: 128 in each mini-batch through a ResNet-50, which needs less time for an image than sixteen CPUs for its
decoding, and through a ResNet-152 of twice the width, which needs more; as many workers on the one GPU as decode for it
(`workers_per_gpu`), beside a loop written by hand: torch's DataLoader with as many processes that decode, and the same
batches. Texts: the second way of docs/engines-on-gpus.md, with a model of transformers, 64 mini-batches of 8 rows in
flight in each of four workers on the GPU, beside the same script with one mini-batch at a time.

Needs a GPU, torch, transformers and pillow; without them there is nothing to measure.
"""

from __future__ import annotations

import json
import os
import random
import string
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from benchmarks import Size, data, image_model
from benchmarks.images import SCRIPT, images
from benchmarks.jobs import Jobs, Run
from benchmarks.measure import Comparison, Figures
from parallelrun_core.folder.decisions import read_decisions

_DECODERS: Final = max(2, (os.cpu_count() or 2) - 4)
_BATCH: Final = 128
"""Images."""
_SAMPLE_S = 0.05
_TEXT_WORKERS: Final = 4
_ROWS_EACH: Final = 8
_IN_FLIGHT: Final = 64
_TEXTS: Final = """\
import asyncio
import os

import torch
from transformers import GPT2Config, GPT2LMHeadModel

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


async def init():
    global model, requests, batches
    torch.manual_seed(0)
    size = int(os.environ.get("MODEL_WIDTH", "1024"))
    config = GPT2Config(vocab_size=256, n_positions=512, n_embd=size, n_layer=size // 64, n_head=size // 64)
    model = GPT2LMHeadModel(config).to(DEVICE, torch.bfloat16).eval()
    requests = asyncio.Queue()
    batches = asyncio.create_task(run_batches())


def generate(texts):
    tokens = torch.tensor([list(text.encode()) for text in texts]).to(DEVICE)
    with torch.inference_mode():
        answers = model.generate(
            tokens, attention_mask=torch.ones_like(tokens), max_new_tokens=8, min_new_tokens=8, do_sample=False,
            pad_token_id=0,
        )
    return [bytes(answer).hex() for answer in answers[:, tokens.shape[1]:].tolist()]


async def run_batches():
    while True:
        batch = [await requests.get()]
        while len(batch) < 256 and not requests.empty():
            batch.append(requests.get_nowait())
        try:
            answers = await asyncio.to_thread(generate, [text for text, _ in batch])
        except Exception as error:
            answers = [error] * len(batch)
        for (_, future), answer in zip(batch, answers, strict=True):
            if future.done():
                continue
            future.set_exception(answer) if isinstance(answer, Exception) else future.set_result(answer)


async def answer_to(text):
    future = asyncio.get_running_loop().create_future()
    await requests.put((text, future))
    return await future


async def run(mini_batch):
    answers = await asyncio.gather(*map(answer_to, mini_batch["text"]))
    return [f"{number} {answer}" for number, answer in zip(mini_batch["id"], answers)]
"""


@contextmanager
def _busy() -> Iterator[list[tuple[float, int]]]:
    """Sample the utilization of the first GPU: times, and percents."""
    import pynvml

    pynvml.nvmlInit()
    gpu = pynvml.nvmlDeviceGetHandleByIndex(0)
    samples, is_over = list[tuple[float, int]](), threading.Event()

    def sample() -> None:
        while not is_over.wait(_SAMPLE_S):
            samples.append((time.time(), int(pynvml.nvmlDeviceGetUtilizationRates(gpu).gpu)))

    thread = threading.Thread(target=sample)
    thread.start()
    try:
        yield samples
    finally:
        is_over.set()
        thread.join()


def _name_of_gpu() -> str:
    """Return the name of the first GPU; an empty string if there is none."""
    import pynvml

    try:
        pynvml.nvmlInit()
        return str(pynvml.nvmlDeviceGetName(pynvml.nvmlDeviceGetHandleByIndex(0)))
    except pynvml.NVMLError:
        return ""


def _share(samples: list[tuple[float, int]], first: float, last: float) -> float:
    """The mean utilization between two times, 0 to 1."""
    percents = [percent for at, percent in samples if first <= at <= last]
    return sum(percents) / len(percents) / 100 if percents else 0.0


def _work_of(done: Run) -> tuple[float, float]:
    """Return the times of the first run() and of the last commit."""
    first = min(outcome.started for outcome in read_decisions(done.folder.path))
    return first, max(log.stat().st_mtime for log in done.folder.path.glob("decisions.*"))


def image_loop(folder: str, output: str) -> None:
    """Classify all images of a folder as one would by hand, write their rows, and print what it took."""
    import torch
    from torch.utils.data import DataLoader, Dataset

    paths = [os.path.join(top, name) for top, _, names in os.walk(folder, followlinks=True) for name in names]
    _, _, shape = image_model.model()

    class Images(Dataset):  # type: ignore[misc]
        def __len__(self) -> int:
            return len(paths)

        def __getitem__(self, at: int) -> tuple[str, Any]:
            return paths[at], torch.from_numpy(image_model.read_image(paths[at], shape.side).copy())

    loader: Any = DataLoader(Images(), batch_size=_BATCH, num_workers=_DECODERS, pin_memory=torch.cuda.is_available())
    image_model.class_of_each(image_model.read_image(paths[0], shape.side)[None].copy())
    began = time.time()
    with open(output, "w") as rows:
        for names, pixels in loader:
            classes = image_model.class_of_each(pixels.numpy())
            rows.writelines(f"{name} {number}\n" for name, number in zip(names, classes, strict=True))
    print(json.dumps({"first": began, "last": time.time(), "images": len(paths)}))


def _image_round(jobs: Jobs, folder: Path, network: str) -> Figures:
    with _busy() as samples:
        done = jobs.run(
            folder, mini_batch_size=_BATCH, workers_per_gpu=_DECODERS, environment_variables={"IMAGE_MODEL": network}
        )
    first, last = _work_of(done)
    return {"wall_s": last - first, "busy": _share(samples, first, last), "whole_s": done.wall_s}


def _loop_round(folder: Path, network: str) -> Figures:
    with tempfile.TemporaryDirectory() as scratch, _busy() as samples:
        program = "import sys; from benchmarks.gpu import image_loop; image_loop(*sys.argv[1:])"
        began = time.perf_counter()
        ended = subprocess.run(
            [sys.executable, "-c", program, str(folder), f"{scratch}/rows"], check=True, stdout=subprocess.PIPE,
            env={**os.environ, "IMAGE_MODEL": network},
        )  # fmt: skip
        whole_s = time.perf_counter() - began
    times = json.loads(ended.stdout.splitlines()[-1])
    first, last = times["first"], times["last"]
    return {"wall_s": last - first, "busy": _share(samples, first, last), "whole_s": whole_s}


def _images(jobs: Jobs, network: str, count: int, times: int, rounds: int) -> dict[str, object]:
    folder = data.again(images(count), times)
    _image_round(jobs, images(count), network)  # the first workers find nothing in the page cache
    systems = {
        "ParallelRun": lambda: _image_round(jobs, folder, network),
        "DataLoader": lambda: _loop_round(folder, network),
    }
    comparison = Comparison(systems).run(rounds)
    print(comparison.table())
    return {
        f"{network}_images_per_s": f"{count * times / comparison.spread('ParallelRun', 'wall_s').median:.0f}",
        **comparison.ratio("DataLoader", "ParallelRun", "wall_s").fields(f"{network}_to_loop"),
        **comparison.spread("ParallelRun", "busy").fields(f"{network}_busy"),
        f"{network}_loop_busy": f"{comparison.spread('DataLoader', 'busy').median:.2f}",
    }


def _write_texts(folder: Path, count: int) -> Path:
    letters = random.Random(0)
    path = folder / "texts.jsonl"
    with path.open("w") as file:
        for number in range(count):
            text = "".join(letters.choices(string.ascii_lowercase, k=256))
            file.write(json.dumps({"id": number, "text": text}) + "\n")
    return path


def _text_round(jobs: Jobs, folder: Path, count: int, in_flight: int) -> Figures:
    texts = {"path": str(_write_texts(folder, count)), "transformations": [{"read_json_lines": {}}]}
    with _busy() as samples:
        done = jobs.run(
            folder, inputs={"data": texts}, mini_batch_size=f"rows:{_ROWS_EACH}", mini_batches_in_flight=in_flight,
            workers_per_gpu=_TEXT_WORKERS,
        )  # fmt: skip
    first, last = _work_of(done)
    return {"rows_per_s": count / (last - first), "busy": _share(samples, first, last)}


def main(size: Size) -> dict[str, object]:
    """Measure; returns what the last line says."""
    missing = [name for name in ("torch", "transformers", "PIL") if find_spec(name) is None]
    gpu = _name_of_gpu()
    if missing or not gpu:
        print(f"  there is no {', no '.join([*missing, *([] if gpu else ['GPU'])])} here: nothing is measured")
        return {"left_out": ",".join([*missing, *([] if gpu else ["gpu"])])}
    rounds, count, times, texts = {
        "tiny": (1, 640, 1, 256),
        "quick": (1, 4_000, 4, 8_192),
        "full": (2, 8_000, 8, 65_536),
    }[size]
    last: dict[str, object] = {"gpu": gpu.replace(" ", "_"), "images": count * times, "rounds": rounds}
    with Jobs(SCRIPT, processes=_DECODERS) as jobs:
        for network in image_model.SHAPES:
            last |= _images(jobs, network, count, times, rounds)
    with tempfile.TemporaryDirectory() as scratch, Jobs(_TEXTS, processes=_TEXT_WORKERS) as jobs:
        texts_of = Path(scratch)
        flights = {
            "in flight": lambda: _text_round(jobs, texts_of, texts, _IN_FLIGHT),
            "one at a time": lambda: _text_round(jobs, texts_of, max(texts // 16, 64), 1),
        }
        comparison = Comparison(flights).run(rounds)
    print(comparison.table())
    last["texts_per_s"] = f"{comparison.spread('in flight', 'rows_per_s').median:.0f}"
    last |= comparison.spread("in flight", "busy").fields("texts_busy")
    last |= comparison.ratio("in flight", "one at a time", "rows_per_s").fields("texts_to_one_at_a_time")
    return last
