// The slowest tries of what the timeline shows.

import type { JSX } from "preact";
import type { Job, Timeline } from "../../../api/types";
import { DataTable } from "../../../charts/twin";
import { Card } from "../../../parts/card";
import { count } from "../../../words/numbers";
import { duration } from "../../../words/times";
import { linkToMiniBatch } from "../links";

/** Below this, a factor of the median says more of the clock than of the mini-batch. */
const SHORTEST_S = 0.001;

export function Slowest({ job, timeline }: { job: Job; timeline: Timeline }): JSX.Element | null {
  if (!timeline.slowest.length) return null;
  return (
    <Card
      title="Slowest tries"
      aside={
        timeline.median_run_s !== null && <span class="sub">median of all: {duration(timeline.median_run_s)}</span>
      }
    >
      <DataTable
        caption="Slowest tries"
        columns={[
          { name: "Mini-batch" },
          { name: "run()", isNumber: true },
          { name: "Times the median", isNumber: true },
          { name: "Worker" },
          { name: "Began after", isNumber: true },
        ]}
        rows={timeline.slowest.map((each) => [
          <a href={linkToMiniBatch(job.id, each.mini_batch)}>{count(each.mini_batch)}</a>,
          duration(each.run_s),
          (timeline.median_run_s ?? 0) < SHORTEST_S ? "–" : (each.times_median?.toFixed(1) ?? "–"),
          `${each.node}/${each.process}`,
          duration(each.begin_s),
        ])}
      />
    </Card>
  );
}
