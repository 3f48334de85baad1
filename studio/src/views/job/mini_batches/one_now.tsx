// The try of a mini-batch that runs now: since when, in which process, against the median, and in which line it is.

import type { JSX } from "preact";
import { useNow } from "../../../api/every";
import type { Job, MiniBatchNow } from "../../../api/types";
import { State } from "../../../parts/state";
import { clock, duration, secondsBetween } from "../../../words/times";
import { linkToLog } from "../links";
import { StackNow } from "./stack_now";

/** Below this, a factor of the median says more of the clock than of the mini-batch. */
const SHORTEST_S = 0.001;

export function OneNow({ job, of, median }: { job: Job; of: MiniBatchNow; median: number | null }): JSX.Element {
  const now = useNow(true);
  const { node, process, number, doing, started, run_started, logs } = of;
  const seconds = Math.max(0, secondsBetween(run_started ?? started, now));
  const factor =
    run_started && median !== null && median >= SHORTEST_S
      ? `${(seconds / median).toFixed(1)} times the median of ${duration(median)}`
      : "";
  return (
    <div class="now">
      <p class="heading">
        <b>Try {number}</b>
        <State state={doing} kind="running" />
      </p>
      <p class="facts">
        {[
          `since ${clock(started)}`,
          doing === "loading" ? `has waited ${duration(seconds)} for its data` : `in run() for ${duration(seconds)}`,
          factor,
          `${node}/${process}`,
        ]
          .filter(Boolean)
          .join(" · ")}
      </p>
      {logs.length > 0 && (
        <p class="links">
          Logs:{" "}
          {logs.map((path) => (
            <a key={path} href={linkToLog(job.id, path)}>
              {path}
            </a>
          ))}
        </p>
      )}
      {job.type === "parallel" && <StackNow job={job.id} node={node} process={process} />}
    </div>
  );
}
