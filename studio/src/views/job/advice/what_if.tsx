// How long the job would have taken with other numbers of nodes or processes, or other mini-batches: each value with a bar
// as long as its time, and with its cost if a price is given.

import type { JSX } from "preact";
import { getJson } from "../../../api/http";
import { isOver } from "../../../api/live";
import { useLoaded } from "../../../api/loaded";
import { jobPath } from "../../../api/paths";
import type { AdviceCurve, Job } from "../../../api/types";
import { Card } from "../../../parts/card";
import { Choice } from "../../../parts/choice";
import { Copy } from "../../../parts/copy";
import { Empty, Shown } from "../../../parts/notice";
import { Prose } from "../../../parts/prose";
import { ask, place } from "../../../shell/router";
import { count, short } from "../../../words/numbers";
import { clock, duration } from "../../../words/times";
import { LEAST_GAIN_S, untilPlateau } from "./plateau";

type Setting = "nodes" | "processes" | "mini_batch_size";

const SETTINGS: Record<Setting, string> = {
  nodes: "nodes",
  processes: "processes on each node",
  mini_batch_size: "mini-batch size",
};
const RANGES: Record<Setting, string> = {
  nodes: "1,2,3,4,6,8,12,16,24,32,48,64",
  processes: "1,2,3,4,6,8,12,16,24,32",
  mini_batch_size: "1,2,5,10,20,50,100,200,500,1000",
};

/** The server's note of a job that runs: here, all is told of the rest of it. */
const SO_FAR = "The job runs: this is about what has ended so far.";

export function WhatIf({ job }: { job: Job }): JSX.Element {
  const { query } = place.value;
  const setting = (query.get("what") ?? "nodes") as Setting;
  const price = /^\d{1,7}(\.\d{1,4})?$/.test(query.get("price") ?? "") ? query.get("price")! : "";
  const asked = `${setting}=${RANGES[setting] ?? RANGES.nodes}`;
  const path = jobPath(job.id, "/advice/what-if", { what_if: asked, price });
  const curve = useLoaded(path, (signal) => getJson<AdviceCurve>(path, signal), isOver(job));
  return (
    <Card
      title="What if"
      aside={
        <>
          <Choice label="Setting" value={setting} options={SETTINGS} onChange={(what) => ask({ what })} />
          <label class="pick">
            Price of a node-hour
            <input
              type="text"
              inputMode="decimal"
              size={6}
              value={price}
              onChange={(event) => ask({ price: event.currentTarget.value.trim() })}
            />
          </label>
          <Copy
            text={`parallelrun job advise ${job.id} --what-if ${asked}${price && ` --price ${price}`}`}
            label="Copy the command that computes this"
          >
            CLI
          </Copy>
        </>
      }
    >
      <Shown of={curve}>
        {(value) =>
          value.points.length ? <Points job={job} curve={value} /> : <Empty>Nothing can be computed of this job.</Empty>
        }
      </Shown>
    </Card>
  );
}

function Points({ job, curve }: { job: Job; curve: AdviceCurve }): JSX.Element {
  const left = job.pace?.left_s ?? undefined;
  const { scheduled, done, failed, listing_done } = job.progress;
  const undecided = left === undefined || !listing_done ? undefined : scheduled - done - failed;
  // What it costs is told of the same time: the rest of a job that runs, all of one that has ended.
  const part = left === undefined ? 1 : left / curve.seconds;
  const points = untilPlateau(curve, left, undecided);
  const longest = Math.max(curve.seconds, ...points.map(({ seconds }) => seconds));
  const hasCost = points.some(({ cost }) => cost !== null);
  return (
    <>
      <div class="scroll tall" tabIndex={0} role="region" aria-label="Table of what other settings give">
        <table class="what-if">
          <thead>
            <tr>
              <th scope="col" class="number">
                {SETTINGS[curve.setting]}
              </th>
              <th scope="col">
                <span class="unseen">As a bar</span>
              </th>
              <th scope="col" class="number">
                {left === undefined ? "Time" : "The rest, from now"}
              </th>
              <th scope="col" class="number">
                Node-hours
              </th>
              {hasCost && (
                <th scope="col" class="number">
                  Cost
                </th>
              )}
            </tr>
          </thead>
          <tbody>
            {points.map((point) => (
              <tr key={point.value} class={point.value === curve.now ? "now" : ""}>
                <th scope="row" class="number">
                  {count(point.value)}
                  {point.value === curve.now && " (now)"}
                </th>
                <td class="reach">
                  <i style={{ width: `${(point.seconds / longest) * 100}%` }} />
                </td>
                <td class="number">
                  {left === undefined ? duration(point.seconds) : restOf(job, left, point.seconds / curve.seconds)}
                </td>
                <td class="number">{short(point.node_hours * part)}</td>
                {hasCost && <td class="number">{point.cost === null ? "–" : short(point.cost * part)}</td>}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <ul class="notes sub">
        <li>
          {left === undefined ? "It took" : "By what has ended so far, which took"} {duration(curve.seconds)};{" "}
          {SETTINGS[curve.setting]}: {count(curve.now)}.
        </li>
        {points.length < curve.points.length && (
          <li>What is not listed would save less than {LEAST_GAIN_S} seconds, or 2 % of the time, more.</li>
        )}
        {curve.notes
          .filter((note) => left === undefined || note !== SO_FAR)
          .map((note) => (
            <li key={note}>
              <Prose text={note} />
            </li>
          ))}
      </ul>
    </>
  );
}

/** What has not been decided yet, if it goes on with another setting from now on. */
function restOf(job: Job, left: number, factor: number): string {
  const now = Date.parse(job.pace!.as_of);
  return `${duration(left * factor)}, ends about ${clock(now + left * factor * 1000)}`;
}
