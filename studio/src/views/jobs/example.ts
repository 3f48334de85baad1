// The example job: a script that counts words, and some small files.

import { sendText } from "../../api/http";
import { apiPath } from "../../api/paths";
import type { Job } from "../../api/types";
import { sendCode, sendData } from "../../api/uploads";
import type { ZippedFile } from "../../words/zip";

const NAME = "first-job";
const FILES = 40;
const WORDS = ["a job", "runs your script", "over many files", "on all workers", "of the cluster"];
const SCRIPT = `"""Counts the words of each file."""

import time
from pathlib import Path


def init() -> None:
    print("a worker has started")


def run(mini_batch: list[str]) -> list[str]:
    print("looking at", mini_batch)
    time.sleep(0.2)  # so that there is something to watch
    return [f"{Path(path).name} {len(Path(path).read_text().split())}" for path in mini_batch]
`;

const file = (name: string, text: string): ZippedFile => ({ name, content: new TextEncoder().encode(text) });

/** Submit it; returns its id. Raises Problem. */
export async function runExample(): Promise<string> {
  const inputs = Array.from({ length: FILES }, (_, index) =>
    file(`text-${String(index).padStart(2, "0")}.txt`, `${WORDS.slice(0, 1 + (index % WORDS.length)).join(" ")}\n`),
  );
  const [data, code] = await Promise.all([sendData(NAME, "1", inputs), sendCode([file("count_words.py", SCRIPT)])]);
  const text = `name: ${NAME}
entry_script: count_words.py
code: ${code}
inputs: {data: {path: "${data}"}}
mini_batch_size: 1
`;
  return (await sendText<Job>(apiPath("/jobs"), text)).id;
}
