// Where the workers of a running job are: asked for by a button, answered within seconds, without disturbing them.

import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { useEvery } from "../../../api/every";
import { getJson, send, type Problem } from "../../../api/http";
import { useLoaded } from "../../../api/loaded";
import { jobPath } from "../../../api/paths";
import type { Job, NodeStacks } from "../../../api/types";
import { Card } from "../../../parts/card";
import { Copy } from "../../../parts/copy";
import { moment } from "../../../words/times";
import { textOf } from "../stack_text";

const DOING = {
  waits_for_work: "waits for work",
  computes: "computes",
  waits: "waits for a disk, a lock, a clock or another process",
  unknown: "",
};
const EVERY_MS = 1500;

export function Stacks({ job }: { job: Job }): JSX.Element {
  const [asked, setAsked] = useState<{ id: string; nodes: string[] } | undefined>(undefined);
  const [problem, tell] = useState("");
  const loaded = useLoaded(
    job.id,
    (signal) => getJson<{ items: NodeStacks[] }>(jobPath(job.id, "/stacks"), signal),
    useEvery(EVERY_MS),
  );
  const answers = loaded.value?.items ?? [];
  const missing =
    asked?.nodes.filter((node) => !answers.some((answer) => answer.node === node && answer.id === asked.id)) ?? [];
  useEffect(() => {
    if (asked && !missing.length) setAsked(undefined);
  }, [missing.length]);
  const askNow = (): void => {
    tell("");
    send<{ id: string; nodes: string[] }>("POST", `${jobPath(job.id)}:stacks`).then(setAsked, (error: Problem) =>
      tell(error.message),
    );
  };

  return (
    <Card
      title="Where the workers are"
      aside={
        <>
          <Copy text={`parallelrun job stacks ${job.id}`} label="Copy the command that does the same">
            CLI
          </Copy>
          <button type="button" disabled={asked !== undefined} onClick={askNow}>
            {asked ? `Waiting for ${missing.length} …` : "Ask them"}
          </button>
        </>
      }
    >
      <p class="trouble" role="alert">
        {problem}
      </p>
      {!answers.length && (
        <p class="sub">Workers write down what they are doing, also those that hang. It doesn't disturb them.</p>
      )}
      {answers.map((answer) => (
        <section key={answer.node}>
          <h3>
            {answer.node} <span class="sub">{moment(answer.at)}</span>
          </h3>
          {answer.workers.map(({ process, doing, note, threads }) => (
            <details key={process}>
              <summary>{[process, DOING[doing], note].filter(Boolean).join(" · ")}</summary>
              <pre>{threads.map(textOf).join("\n\n")}</pre>
            </details>
          ))}
        </section>
      ))}
    </Card>
  );
}
