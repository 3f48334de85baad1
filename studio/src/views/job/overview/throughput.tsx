// How much is done in time: all so far, with where it leads, or how much in each stretch.

import type { JSX } from "preact";
import { getJson } from "../../../api/http";
import { isOver } from "../../../api/live";
import { usePicture, type Loaded } from "../../../api/loaded";
import { jobPath } from "../../../api/paths";
import type { Job, Throughput } from "../../../api/types";
import { LineChart } from "../../../charts/line_chart";
import { Twin } from "../../../charts/twin";
import { Card } from "../../../parts/card";
import { Choice } from "../../../parts/choice";
import { Empty, Shown } from "../../../parts/notice";
import { ask, place } from "../../../shell/router";
import { count, rate, short } from "../../../words/numbers";
import { itemsFound } from "../../../words/pace";
import { clock, secondsBetween } from "../../../words/times";
import { soFar } from "./so_far";

const MOST_POINTS = 120;
const FEWEST_POINTS = 20;
const LEAST_ITEMS = 10;
const MOST_AHEAD = 1000;
const PICTURES = { "": "Done so far", rate: "Items a second" };

const isRate = (): boolean => place.value.query.get("picture") === "rate";

export function useThroughput(job: Job, revision: number): Loaded<Throughput> {
  const seconds = job.started ? secondsBetween(job.started, job.ended ?? Date.now()) : 0;
  const points = Math.max(FEWEST_POINTS, Math.min(MOST_POINTS, Math.round(seconds)));
  const path = jobPath(job.id, "/throughput", { points, least_items: isRate() ? LEAST_ITEMS : 0 });
  return usePicture(`${job.id} ${isRate()}`, (signal) => getJson<Throughput>(path, signal), revision, job.state);
}

export function ThroughputCard({ job, of }: { job: Job; of: Loaded<Throughput> }): JSX.Element {
  return (
    <Card
      title="Throughput"
      aside={
        <Choice
          label="Picture"
          value={isRate() ? "rate" : ""}
          options={PICTURES}
          onChange={(picture) => ask({ picture })}
        />
      }
    >
      <Shown of={of}>{(throughput) => <Chart job={job} throughput={throughput} />}</Shown>
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

function Chart({ job, throughput }: { job: Job; throughput: Throughput }): JSX.Element {
  if (!throughput.start || !throughput.items.length)
    return <Empty>{isOver(job) ? "No mini-batch was decided." : "No mini-batch is decided yet."}</Empty>;
  const whole = fromTheBeginning(throughput);
  const { start, begin_s, bucket_s, items, failed, retried, mini_batches, busy_workers } = whole;
  const begin = Date.parse(start!) / 1000 + begin_s;
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
      {isRate() ? <Rate begin={begin} of={whole} /> : <SoFar job={job} begin={begin} of={whole} />}
    </Twin>
  );
}

function Rate({ begin, of }: { begin: number; of: Throughput }): JSX.Element {
  const { bucket_s, items, failed } = of;
  const times = items.map((_, index) => begin + (index + 0.5) * bucket_s);
  const perSecond = (values: number[]): number[] => values.map((value) => value / bucket_s);
  return (
    <LineChart
      label={`Items a second, from ${clock(begin * 1000)} on; at most ${rate(Math.max(...perSecond(items)))}`}
      times={times}
      lines={[
        { name: "items/s", kind: "first", values: perSecond(items), isFilled: true },
        ...(failed.some(Boolean) ? [{ name: "failed/s", kind: "bad" as const, values: perSecond(failed) }] : []),
      ]}
      format={(value) => short(value)}
    />
  );
}

function SoFar({ job, begin, of }: { job: Job; begin: number; of: Throughput }): JSX.Element {
  const ends = job.pace?.ends ? Date.parse(job.pace.ends) / 1000 : undefined;
  const { times, done, expected } = soFar(begin, of, itemsFound(job), ends);
  const where =
    ends === undefined ? "" : `, and all of them about ${clock(ends * 1000)} at the pace of the last minutes`;
  return (
    <LineChart
      label={`Items done so far, from ${clock(begin * 1000)} on: ${count(done.at(ends === undefined ? -1 : -2) ?? 0)}${where}`}
      times={times}
      lines={[
        { name: "items done", kind: "first", values: done, isFilled: true },
        ...(ends === undefined
          ? []
          : [{ name: "expected", kind: "second" as const, values: expected, isDashed: true }]),
      ]}
      most={itemsFound(job)}
      format={(value) => short(value)}
    />
  );
}
