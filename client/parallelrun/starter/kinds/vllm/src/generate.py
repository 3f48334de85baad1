"""Has a language model on the worker's own GPU answer for each row of a table; vLLM batches whatever is in flight."""

import asyncio
import os
import uuid

from parallelrun.script import ItemError, WorkerBroken

MOST_TOKENS = 100


async def init():
    """Called once in each worker, before its first mini-batch: loads the model."""
    global engine, sampling, tokenizer
    try:
        from transformers import AutoTokenizer
        from vllm import AsyncEngineArgs, SamplingParams
        from vllm.v1.engine.async_llm import AsyncLLM
    except ImportError as error:
        raise RuntimeError(
            "vllm can't be imported in the workers' Python: say environment: {pip: [vllm]} in the job, "
            "or use an image that has it (vLLM needs a GPU, and 0.9 or later)"
        ) from error
    tokenizer = AutoTokenizer.from_pretrained(os.environ["MODEL"])
    engine = AsyncLLM.from_engine_args(AsyncEngineArgs(model=os.environ["MODEL"]))
    sampling = SamplingParams(max_tokens=MOST_TOKENS, temperature=0)


async def run(mini_batch):
    """Called for many mini-batches at once, each a pandas DataFrame; returns a row for each of its rows."""
    return await asyncio.gather(*(row_of(row) for row in mini_batch.to_dict("records")))


async def shutdown():
    engine.shutdown()


async def row_of(row):
    """The row of the output; an ItemError has no row, and its neighbors count."""
    from vllm.v1.engine.exceptions import EngineDeadError

    if not isinstance(row["text"], str) or not row["text"].strip():
        return ItemError("the row has no text")
    messages = [{"role": "user", "content": row["text"]}]
    prompt = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    try:
        steps = [step async for step in engine.generate(prompt, sampling, request_id=uuid.uuid4().hex)]
    except ValueError as error:  # such as a text that is longer than the model's context
        return ItemError(str(error))
    except EngineDeadError as error:
        raise WorkerBroken(f"the engine is dead: {error}") from error
    (answer,) = steps[-1].outputs  # each step has the text up to then
    return {"id": row["id"], "answer": answer.text, "tokens": len(answer.token_ids)}
