"""An error of a GPU's memory is known by its type's name and its words, of whichever library it is."""

from __future__ import annotations

import pytest

from parallelrun_worker.commands.runner import CommandFailed
from parallelrun_worker.execution.gpu_memory import has_run_out, says_so

TORCH = "CUDA out of memory. Tried to allocate 20.00 GiB. GPU 0 has a total capacity of 39 GiB"


def error_of(module: str, name: str, message: str, base: type[Exception] = Exception) -> Exception:
    made: Exception = type(name, (base,), {"__module__": module})(message)
    return made


@pytest.mark.parametrize(
    "error",
    [
        error_of("torch", "OutOfMemoryError", TORCH, RuntimeError),
        error_of("torch.cuda", "OutOfMemoryError", "whatever it says", RuntimeError),
        RuntimeError(TORCH),
        RuntimeError("CUDA error: out of memory\nCUDA kernel errors might be asynchronously reported"),
        RuntimeError("HIP out of memory. Tried to allocate 2.00 GiB"),
        RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
        RuntimeError("cuDNN error: CUDNN_STATUS_ALLOC_FAILED"),
        error_of("cupy.cuda.memory", "OutOfMemoryError", "Out of memory allocating 8,000,000,000 bytes", MemoryError),
        error_of("cupy_backends.cuda.api.runtime", "CUDARuntimeError", "cudaErrorMemoryAllocation: out of memory"),
        error_of(
            "tensorflow.python.framework.errors_impl", "ResourceExhaustedError",
            "OOM when allocating tensor with shape[64,3] on /job:localhost/replica:0/task:0/device:GPU:0 by allocator",
        ),
        error_of("jaxlib.xla_extension", "XlaRuntimeError", "RESOURCE_EXHAUSTED: Out of memory while trying"),
        error_of("numba.cuda.cudadrv.driver", "CudaAPIError", "cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY"),
        MemoryError("std::bad_alloc: out_of_memory: CUDA error at: /rmm/cuda_memory_resource.hpp"),
    ],
    ids=lambda error: f"{type(error).__module__}.{type(error).__name__}",
)  # fmt: skip
def test_it_is_known(error: Exception) -> None:
    assert has_run_out(error)
    wrapped = ValueError("the model failed")
    wrapped.__cause__ = error
    assert has_run_out(wrapped)


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        MemoryError("Unable to allocate 8.00 GiB for an array"),
        RuntimeError("CUDA error: device-side assert triggered"),
        error_of("mine", "OutOfMemoryError", "the shop has no memory left"),
        error_of(
            "tensorflow.python.framework.errors_impl", "ResourceExhaustedError",
            "OOM when allocating tensor with shape[64,3] on /job:localhost/replica:0/task:0/device:CPU:0 by allocator",
        ),
        KeyboardInterrupt(TORCH),
        SystemExit(),
    ],
    ids=repr,
)  # fmt: skip
def test_others_are_not(error: BaseException) -> None:
    assert not has_run_out(error)


def test_a_broken_text_is_no_reason_to_fail() -> None:
    class Broken(Exception):
        def __str__(self) -> str:
            raise ValueError("no text")

    assert not has_run_out(Broken())


def test_it_is_seen_in_the_last_words_of_a_command() -> None:
    lines = ["Traceback (most recent call last):", f"torch.OutOfMemoryError: {TORCH}"]
    assert CommandFailed(1, [], lines).category == "GPU_OUT_OF_MEMORY"
    assert CommandFailed(1, ["ValueError"], []).category == "EXITED"
    assert not says_so("")
