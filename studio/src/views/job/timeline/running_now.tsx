// What runs now, the longest first: which of it hangs is seen here before it has ended.

import type { JSX } from "preact";
import type { Job, Lane, RunningTry, Timeline } from "../../../api/types";
import { NOW } from "../../../charts/lanes";
import { DataTable } from "../../../charts/twin";
import { Card } from "../../../parts/card";
import { count, counted } from "../../../words/numbers";
import { clock, duration } from "../../../words/times";
import { linkToMiniBatch } from "../links";

const MOST = 20;
/** A try that takes so many times as long as the median may hang. */
export const SLOW = 3;

interface AtWork {
  lane: Lane;
  of: RunningTry;
}

export function RunningNow({ job, timeline }: { job: Job; timeline: Timeline }): JSX.Element | null {
  const present = timeline.lanes.filter(({ now }) => now);
  if (!present.length) return null;
  const tries: AtWork[] = present
    .flatMap((lane) => lane.now!.tries.map((of) => ({ lane, of })))
    .sort((one, other) => one.of.begin_s - other.of.begin_s);
  const start = timeline.start ? Date.parse(timeline.start) / 1000 : 0;
  return (
    <Card title="Now" aside={<span class="sub">{summed(timeline, present)}</span>}>
      {tries.length > 0 && (
        <DataTable
          caption="Tries that run now"
          columns={[
            { name: "Mini-batch" },
            { name: "Worker" },
            { name: "Does" },
            { name: "Since" },
            { name: "For", isNumber: true },
            { name: "Times the median", isNumber: true },
            { name: "Try", isNumber: true },
          ]}
          rows={tries
            .slice(0, MOST)
            .map(({ lane, of }) => [
              <a href={linkToMiniBatch(job.id, of.mini_batch)}>{count(of.mini_batch)}</a>,
              `${lane.node}/${lane.process}`,
              of.load_s === null ? NOW.loading : NOW.running,
              clock((start + of.begin_s) * 1000),
              duration(Math.max(0, timeline.length_s - of.begin_s)),
              <span class={(of.times_median ?? 0) >= SLOW ? "bad" : ""}>{of.times_median?.toFixed(1) ?? "–"}</span>,
              of.number,
            ])}
        />
      )}
      {tries.length > MOST && (
        <p class="sub">
          The first {MOST} of {count(present.reduce((sum, { now }) => sum + now!.in_flight, 0))}.
        </p>
      )}
    </Card>
  );
}

/** How many workers do what, in words. */
function summed({ preparing }: Timeline, lanes: Lane[]): string {
  const counts = new Map<string, number>();
  for (const { now } of lanes) counts.set(NOW[now!.doing], (counts.get(NOW[now!.doing]) ?? 0) + 1);
  const running = lanes.filter(({ now }) => now!.in_flight > 0);
  const [workers, inFlight] = [running.length, running.reduce((sum, { now }) => sum + now!.in_flight, 0)];
  return [
    ...[...counts].map(([doing, workers]) => `${counted(workers, "worker")} ${doing.split(":")[0]}`),
    ...(inFlight > workers ? [`${counted(inFlight, "mini-batch", "mini-batches")} in flight`] : []),
    ...(preparing.length ? [`${counted(preparing.length, "node")} prepare`] : []),
  ].join(", ");
}
