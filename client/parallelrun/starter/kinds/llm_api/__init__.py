"""Starter `llm-api`: a language model behind an API like OpenAI's answers a question about each row of a table."""

from parallelrun.starter.kind import StarterKind

KIND = StarterKind(sample="data/reviews.jsonl", read_step="read_json_lines: {}", script="src/ask.py", has_stand_in=True)
