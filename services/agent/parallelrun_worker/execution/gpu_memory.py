"""Recognition of errors that say that the memory of a GPU has run out: by type's name and words, importing nothing."""

from __future__ import annotations

import re

CATEGORY = "GPU_OUT_OF_MEMORY"
_WORDS = (
    r"(CUDA|HIP)( error)?: out of memory|(CUDA|HIP) out of memory|CUDA_ERROR_OUT_OF_MEMORY|cudaErrorMemoryAllocation"
    r"|(CUBLAS|CUDNN|CUFFT|CUSPARSE|CUSOLVER)_(STATUS_)?ALLOC_FAILED|out_of_memory: CUDA error"
    r"|RESOURCE_EXHAUSTED: Out of memory"
)
"""Of PyTorch, CUDA itself and its libraries, Numba, RAPIDS and JAX. Compiled for the first error, not before."""
_ON_A_GPU = r"(?s)\bOOM when allocating\b.*\bGPU:"
"""Of TensorFlow, which says the same of the main memory."""
_LONGEST = 20_000
_MOST_CAUSES = 5


def has_run_out(error: BaseException) -> bool:
    """Return whether it is one, or was raised from one."""
    cause: BaseException | None = error
    for _ in range(_MOST_CAUSES):
        if cause is None:
            return False
        if _is_one(cause):
            return True
        cause = cause.__cause__
    return False


def says_so(text: str) -> bool:
    """Return whether what a program has printed says it."""
    return bool(re.search(_WORDS, text) or re.search(_ON_A_GPU, text))


def _is_one(error: BaseException) -> bool:
    kind = type(error)
    if kind.__name__ == "OutOfMemoryError" and kind.__module__.split(".")[0] in ("torch", "cupy"):
        return True
    if not isinstance(error, Exception):
        return False
    try:
        return says_so(str(error)[:_LONGEST])
    except Exception:  # the user's own __str__ may be broken
        return False
