// In which line a worker is now: asked for by a button, answered within seconds.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { useEvery } from "../../../api/every";
import { getJson, send, type Problem } from "../../../api/http";
import { useLoaded } from "../../../api/loaded";
import { jobPath } from "../../../api/paths";
import type { StacksAsked, StacksReport } from "../../../api/types";
import { Copy } from "../../../parts/copy";
import { clock } from "../../../words/times";
import { textOf } from "../stack_text";

const EVERY_MS = 1500;

interface Props {
  job: string;
  node: string;
  process: string;
}

export function StackNow({ job, node, process }: Props): JSX.Element {
  const [asked, setAsked] = useState("");
  const [problem, tell] = useState("");
  const loaded = useLoaded(
    job,
    (signal) => (asked ? getJson<StacksReport>(jobPath(job, "/stacks"), signal) : Promise.resolve(undefined)),
    useEvery(EVERY_MS),
    asked,
  );
  const answer = loaded.value?.items.find((each) => each.node === node && each.id === asked);
  const worker = answer?.workers.find((each) => each.process === process);
  const askNow = (): void => {
    tell("");
    send<StacksAsked>("POST", `${jobPath(job)}:stacks`, { node, process }).then(
      ({ id }) => setAsked(id),
      (refused: Problem) => tell(refused.message),
    );
  };
  return (
    <>
      <p class="actions">
        <button type="button" disabled={asked !== "" && !answer} onClick={askNow}>
          {asked && !answer ? "Waiting for its node …" : "Show in which line it is"}
        </button>
        <Copy text={`parallelrun job stacks ${job}`} label="Copy the command that does the same">
          CLI
        </Copy>
      </p>
      {problem && (
        <p class="trouble" role="alert">
          {problem}
        </p>
      )}
      {answer && (
        <>
          <p class="sub">
            {clock(answer.at)} · {worker ? worker.note || "where it was" : "the worker has ended"}
          </p>
          {worker && <pre>{worker.threads.map(textOf).join("\n\n")}</pre>}
        </>
      )}
    </>
  );
}
