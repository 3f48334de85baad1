// How much was done in each stretch of time.

import type { JSX } from "preact";
import { getJson } from "../../../api/http";
import { usePicture } from "../../../api/loaded";
import { jobPath } from "../../../api/paths";
import type { Job } from "../../../api/types";
import type { Throughput } from "../../../api/types_of_tiles";
import { LineChart } from "../../../charts/line_chart";
import { Twin } from "../../../charts/twin";
import { Card } from "../../../parts/card";
import { Empty, Shown } from "../../../parts/notice";
import { count, rate, short } from "../../../words/numbers";
import { clock, secondsBetween } from "../../../words/times";

const MOST_POINTS = 120;
const FEWEST_POINTS = 20;

export function ThroughputCard({ job, revision }: { job: Job; revision: number }): JSX.Element {
  const seconds = job.started ? secondsBetween(job.started, job.ended ?? Date.now()) : 0;
  const points = Math.max(FEWEST_POINTS, Math.min(MOST_POINTS, Math.round(seconds)));
  const path = jobPath(job.id, "/throughput", { points });
  const loaded = usePicture(job.id, (signal) => getJson<Throughput>(path, signal), revision, job.state);
  return (
    <Card title="Throughput">
      <Shown of={loaded}>{(throughput) => <Chart throughput={throughput} />}</Shown>
    </Card>
  );
}

function Chart({ throughput }: { throughput: Throughput }): JSX.Element {
  const { start, bucket_s, items, failed, retried, mini_batches, busy_workers } = throughput;
  if (!start || !items.length) return <Empty>No mini-batch is decided yet.</Empty>;
  const begin = Date.parse(start) / 1000;
  const times = items.map((_, index) => begin + (index + 0.5) * bucket_s);
  const perSecond = (values: number[]): number[] => values.map((value) => value / bucket_s);
  const hasFailed = failed.some(Boolean);
  return (
    <Twin
      caption="Throughput over time"
      columns={[
        { name: "From" },
        { name: "Items", isNumber: true },
        { name: "Mini-batches", isNumber: true },
        { name: "Failed", isNumber: true },
        { name: "Tries repeated", isNumber: true },
        { name: "Busy workers", isNumber: true },
      ]}
      rows={() =>
        items.map((value, index) => [
          clock((begin + index * bucket_s) * 1000),
          count(value),
          count(mini_batches[index]!),
          count(failed[index]!),
          count(retried[index]!),
          busy_workers[index]!.toFixed(1),
        ])
      }
    >
      <LineChart
        label={`Items a second, from ${clock(begin * 1000)} on; at most ${rate(Math.max(...perSecond(items)))}`}
        times={times}
        lines={[
          { name: "items/s", kind: "first", values: perSecond(items), isFilled: true },
          ...(hasFailed ? [{ name: "failed/s", kind: "bad" as const, values: perSecond(failed) }] : []),
        ]}
        format={(value) => short(value)}
      />
    </Twin>
  );
}
