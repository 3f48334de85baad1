// One mini-batch with all its tries: where each ran, how long, why it failed, and its logs.

import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { getJson } from "../../../api/http";
import { isOver } from "../../../api/live";
import { useLoaded } from "../../../api/loaded";
import { jobPath } from "../../../api/paths";
import type { Job, MiniBatchTries, MiniBatchTry } from "../../../api/types";
import { Card } from "../../../parts/card";
import { Cause } from "../../../parts/cause";
import { Empty, Shown } from "../../../parts/notice";
import { State } from "../../../parts/state";
import { ask } from "../../../shell/router";
import { bytes, count, counted } from "../../../words/numbers";
import { duration, moment } from "../../../words/times";
import { linkToLog } from "../links";
import { Inputs } from "./inputs";
import { OneNow } from "./one_now";
import { RetryOne } from "./retry_one";

export function OneMiniBatch({ job, id, revision }: { job: Job; id: number; revision: number }): JSX.Element {
  const path = jobPath(job.id, `/mini-batches/${id}`);
  const loaded = useLoaded(path, (signal) => getJson<MiniBatchTries>(path, signal), revision);
  const own = useRef<HTMLDivElement>(null);
  useEffect(() => own.current?.scrollIntoView({ block: "nearest" }), [loaded.value === undefined]);
  return (
    <div ref={own}>
      <Card
        title={`Mini-batch ${count(id)}`}
        kind="chosen"
        aside={
          <>
            {loaded.value && <State state={loaded.value.status} />}
            {loaded.value?.status === "failed" && isOver(job) && <RetryOne job={job} id={id} />}
            <button type="button" class="quiet" onClick={() => ask({ id: undefined })}>
              Close
            </button>
          </>
        }
      >
        <Shown of={loaded}>
          {({ tries, node, now, median_run_s }) => (
            <>
              <Inputs job={job.id} id={id} />
              {now && <OneNow job={job} of={now} median={median_run_s} />}
              {node && !now && <p>Node {node} holds it, and no worker there has begun it.</p>}
              {!tries.length && !node && <Empty>It has not been tried yet.</Empty>}
              <ol class="tries">
                {tries.map((each, index) => (
                  <OneTry key={index} job={job} of={each} number={index + 1} />
                ))}
              </ol>
            </>
          )}
        </Shown>
      </Card>
    </div>
  );
}

const OUTCOMES = { completed: "completed", failed: "failed", retried: "failed", lost: "lost" };

function OneTry({ job, of, number }: { job: Job; of: MiniBatchTry; number: number }): JSX.Element {
  return (
    <li>
      <p class="heading">
        <b>Try {number}</b>
        <State state={OUTCOMES[of.outcome]} />
        {of.outcome === "retried" && <span class="sub">another try followed</span>}
        {of.outcome === "lost" && <span class="sub">the disk has lost its rows; it was made again</span>}
        {of.generation > 0 && <span class="chip">after {counted(of.generation, "reopening")}</span>}
      </p>
      <p class="facts">{factsOf(of).join(" · ")}</p>
      {of.failure && (
        <div class="failure">
          <p>
            <Cause category={of.failure.category} /> <code>{of.failure.message}</code>
          </p>
          {of.failure.traceback && (
            <details open>
              <summary>Traceback</summary>
              <pre>{of.failure.traceback}</pre>
            </details>
          )}
        </div>
      )}
      {of.logs.length > 0 && (
        <p class="links">
          Logs:{" "}
          {of.logs.map((path) => (
            <a key={path} href={linkToLog(job.id, path)}>
              {path}
            </a>
          ))}
        </p>
      )}
    </li>
  );
}

function factsOf(of: MiniBatchTry): string[] {
  return [
    of.started && moment(of.started),
    of.node && `${of.node}/${of.process ?? ""}`,
    of.items !== null && counted(of.items, "item"),
    of.run_s !== null && `run() ${duration(of.run_s)}`,
    of.elapsed_s !== null && `whole ${duration(of.elapsed_s)}`,
    of.process_s !== null && `CPU ${duration(of.process_s)}`,
    of.peak_memory_bytes && `peak ${bytes(of.peak_memory_bytes)}`,
    of.read_bytes && `read ${bytes(of.read_bytes)}`,
  ].filter((each): each is string => Boolean(each));
}
