"""JPEG images, and a residual network with random weights that classifies them: what each system of `images` runs.

It is a module of the rivals and, with `init()` and `run()` behind it, the entry script of a job: it imports nothing of
ours.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np


class Shape(NamedTuple):
    """The size of a network, and of the images that it takes."""

    widths: tuple[int, ...]
    """Channels inside the blocks of each stage; four times as many leave them."""
    depths: tuple[int, ...]
    """Blocks in each stage."""
    side: int
    """Of an image, in pixels."""


SMALL: Final = Shape((16, 32), (1, 1), 112)
SHAPES: Final = {
    "resnet_50": Shape((64, 128, 256, 512), (3, 4, 6, 3), 224),
    "wide_resnet_152": Shape((128, 256, 512, 1024), (3, 8, 36, 3), 224),
}
_CLASSES: Final = 1000
_SHAPE: Final = "IMAGE_MODEL"
"""The environment variable that names one of `SHAPES`; without it, it is the small network."""


def write_images(folder: Path, count: int) -> None:
    """Make a folder with JPEGs of 256 x 256 pixels, about as large as photographs are, all different."""
    from PIL import Image

    folder.mkdir()
    random = np.random.default_rng(0)
    for number in range(count):
        coarse = Image.fromarray(random.integers(0, 256, (32, 32, 3), dtype=np.uint8))
        coarse.resize((256, 256), Image.Resampling.BICUBIC).save(folder / f"img_{number:07d}.jpg", quality=85)


def read_image(path: str, side: int) -> np.ndarray[Any, Any]:
    """Decode and resize an image; returns its pixels, height x width x 3 bytes."""
    from PIL import Image

    with Image.open(path) as image:
        return np.asarray(image.convert("RGB").resize((side, side), Image.Resampling.BILINEAR))


def _block(torch: Any, inside: int, width: int, stride: int) -> Any:
    """A bottleneck block of a residual network."""
    nn = torch.nn
    outside = 4 * width

    class Block(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.body = nn.Sequential(
                nn.Conv2d(inside, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
                nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
                nn.Conv2d(width, outside, 1, bias=False), nn.BatchNorm2d(outside),
            )  # fmt: skip
            is_same = inside == outside and stride == 1
            self.shortcut = nn.Identity() if is_same else nn.Conv2d(inside, outside, 1, stride, bias=False)

        def forward(self, x: Any) -> Any:
            return torch.relu(self.body(x) + self.shortcut(x))

    return Block()


@cache
def model() -> tuple[Any, Any, Shape]:
    """Return torch, the network on the GPU if there is one, and its shape; the same weights in each process."""
    import torch

    shape = SHAPES.get(os.environ.get(_SHAPE, ""), SMALL)
    torch.set_num_threads(1)
    torch.manual_seed(0)
    nn, first = torch.nn, shape.widths[0]
    layers = [nn.Conv2d(3, first, 7, 2, 3, bias=False), nn.BatchNorm2d(first), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    channels = first
    for stage, (width, depth) in enumerate(zip(shape.widths, shape.depths, strict=True)):
        for number in range(depth):
            layers.append(_block(torch, channels, width, 2 if stage and not number else 1))
            channels = 4 * width
    network = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, _CLASSES)).eval()
    if torch.cuda.is_available():
        network = network.to("cuda", torch.bfloat16, memory_format=torch.channels_last)
    return torch, network, shape


def class_of_each(pixels: np.ndarray[Any, Any]) -> list[int]:
    """Return the number of the class of each image.

    Args:
        pixels: images x height x width x 3 bytes.
    """
    torch, network, _ = model()
    with torch.inference_mode():
        images = torch.from_numpy(pixels)
        if torch.cuda.is_available():
            images = images.pin_memory().to("cuda", non_blocking=True).to(torch.bfloat16)
        else:
            images = images.float()
        images = images.permute(0, 3, 1, 2).div(255)
        found: list[int] = network(images).argmax(1).tolist()
    return found


def classify(paths: list[str]) -> list[str]:
    """Return a row for each image: its path, and the number of its class."""
    if not paths:
        return []
    _, _, shape = model()
    classes = class_of_each(np.stack([read_image(path, shape.side) for path in paths]))
    return [f"{path} {number}" for path, number in zip(paths, classes, strict=True)]
