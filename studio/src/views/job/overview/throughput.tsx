// How much was done in each stretch of time.

import type { JSX } from "preact";
import { getJson } from "../../../api/http";
import { usePicture, type Loaded } from "../../../api/loaded";
import { jobPath } from "../../../api/paths";
import type { Job, Throughput } from "../../../api/types";
import { LineChart } from "../../../charts/line_chart";
import { Twin } from "../../../charts/twin";
import { Card } from "../../../parts/card";
import { Empty, Shown } from "../../../parts/notice";
import { count, rate, short } from "../../../words/numbers";
import { clock, secondsBetween } from "../../../words/times";

const MOST_POINTS = 120;
const FEWEST_POINTS = 20;
const MOST_AHEAD = 1000;

export function useThroughput(job: Job, revision: number): Loaded<Throughput> {
  const seconds = job.started ? secondsBetween(job.started, job.ended ?? Date.now()) : 0;
  const points = Math.max(FEWEST_POINTS, Math.min(MOST_POINTS, Math.round(seconds)));
  const path = jobPath(job.id, "/throughput", { points });
  return usePicture(job.id, (signal) => getJson<Throughput>(path, signal), revision, job.state);
}

export function ThroughputCard({ of }: { of: Loaded<Throughput> }): JSX.Element {
  return (
    <Card title="Throughput">
      <Shown of={of}>{(throughput) => <Chart throughput={throughput} />}</Shown>
    </Card>
  );
}

/** The same from the job's beginning on: what passed until the first mini-batch was done is part of the picture. */
function fromTheBeginning(throughput: Throughput): Throughput {
  const { begin_s, bucket_s, items, failed, retried, mini_batches, busy_workers } = throughput;
  const nothing = new Array<number>(Math.min(MOST_AHEAD, Math.max(0, Math.floor(begin_s / bucket_s)))).fill(0);
  return {
    ...throughput,
    begin_s: begin_s - nothing.length * bucket_s,
    items: [...nothing, ...items],
    failed: [...nothing, ...failed],
    retried: [...nothing, ...retried],
    mini_batches: [...nothing, ...mini_batches],
    busy_workers: [...nothing, ...busy_workers],
  };
}

function Chart({ throughput }: { throughput: Throughput }): JSX.Element {
  if (!throughput.start || !throughput.items.length) return <Empty>No mini-batch is decided yet.</Empty>;
  const { start, begin_s, bucket_s, items, failed, retried, mini_batches, busy_workers } = fromTheBeginning(throughput);
  const begin = Date.parse(start!) / 1000 + begin_s;
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
