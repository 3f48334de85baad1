"""Starter `vllm`: a language model on the worker's own GPU, with all mini-batches in flight batched by vLLM."""

from parallelrun.starter.kind import StarterKind

KIND = StarterKind(sample="data/prompts.jsonl", read_step="read_json_lines: {}", script="src/generate.py")
