"""The checksum CRC-32C of Castagnoli, which frames of Snappy have and Python's libraries don't."""

from functools import lru_cache
from typing import Any

_POLYNOMIAL = 0x82F63B78
_LANE_BYTES = 64
_MASK_DELTA = 0xA282EAD8


def masked_crc32c(data: bytes) -> int:
    """The checksum as Snappy's framing format has it, which is rotated and shifted."""
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + _MASK_DELTA) & 0xFFFFFFFF


def crc32c(data: bytes) -> int:
    """The checksum of some bytes.

    Lanes of 64 bytes are summed up side by side, and put together two by two: what precedes a lane counts as if as many
    zeros followed it.
    """
    import numpy as np

    table = _table()
    head = len(data) % _LANE_BYTES
    crc = 0xFFFFFFFF
    for byte in data[:head]:
        crc = int(table[(crc ^ byte) & 0xFF]) ^ (crc >> 8)
    lanes = np.frombuffer(data, dtype=np.uint8, offset=head).reshape(-1, _LANE_BYTES)
    if not len(lanes):
        return crc ^ 0xFFFFFFFF
    sums = np.zeros(len(lanes), dtype=np.uint32)
    sums[0] = crc
    for at in range(_LANE_BYTES):
        sums = table[(sums ^ lanes[:, at]) & 0xFF] ^ (sums >> 8)
    size = _LANE_BYTES
    while len(sums) > 1:
        if len(sums) % 2:  # zeros before a text that begins with a sum of zero change nothing
            sums = np.concatenate([np.zeros(1, dtype=np.uint32), sums])
        sums = _after_zeros(sums[::2], size) ^ sums[1::2]
        size *= 2
    return int(sums[0]) ^ 0xFFFFFFFF


def _after_zeros(sums: Any, count: int) -> Any:
    """The checksums after so many zeros more, a power of two."""
    tables = _zeros_tables(count)
    return tables[0][sums & 0xFF] ^ tables[1][sums >> 8 & 0xFF] ^ tables[2][sums >> 16 & 0xFF] ^ tables[3][sums >> 24]


@lru_cache(maxsize=1)
def _table() -> Any:
    import numpy as np

    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, (table >> 1) ^ np.uint32(_POLYNOMIAL), table >> 1)
    return table


@lru_cache(maxsize=40)
def _zeros_tables(count: int) -> Any:
    """The table of what each byte of a checksum becomes after so many zeros: the checksum is linear in its bits."""
    import numpy as np

    values = np.arange(256, dtype=np.uint32)
    each = np.stack([values << np.uint32(8 * place) for place in range(4)])
    if count == 1:
        return _table()[each & 0xFF] ^ (each >> 8)
    half = count // 2
    return _after_zeros(_after_zeros(each.ravel(), half), half).reshape(4, 256)
