// The few numbers of a job that one looks for first.

import type { JSX } from "preact";
import { isOver } from "../../api/live";
import type { Job } from "../../api/types";
import { bytes, count, rate, short } from "../../words/numbers";
import { shareOf, type Pace } from "../../words/pace";
import { percent } from "../../words/numbers";
import { duration } from "../../words/times";

interface Figure {
  name: string;
  value: string;
  more?: string;
  isBad?: boolean;
  isMoreBad?: boolean;
}

export function Figures({ job, pace }: { job: Job; pace: Pace }): JSX.Element {
  return (
    <dl class="figures">
      {figuresOf(job, pace).map(({ name, value, more, isBad, isMoreBad }) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd class={isBad ? "bad" : ""}>
            {value}
            {more && <span class={isMoreBad ? "sub bad" : "sub"}>{more}</span>}
          </dd>
        </div>
      ))}
    </dl>
  );
}

function figuresOf(job: Job, pace: Pace): Figure[] {
  const time: Figure = {
    name: isOver(job) ? "Took" : "Running for",
    value: job.started ? duration(pace.elapsedS) : "–",
  };
  if (job.type === "pipeline")
    return [{ name: "Steps", value: count(job.steps.length), more: percent(shareOf(job)) }, time];
  const { done, failed, scheduled, listing_done, running, retried, lost, items_done, items_failed, rows } =
    job.progress;
  const known = listing_done || isOver(job);
  const figures: Figure[] = [
    {
      name: "Mini-batches",
      value: count(done + failed),
      more: known ? `of ${count(scheduled)}` : `${count(scheduled)} found so far`,
    },
    {
      name: "Items",
      value: short(items_done),
      ...(items_failed ? { more: `${count(items_failed)} failed`, isMoreBad: true } : {}),
    },
    { name: "Pace", value: rate(pace.itemsPerS) },
    {
      name: "Failed",
      value: count(failed),
      ...(failed ? { isBad: true } : {}),
      ...(retried ? { more: `${count(retried)} tries repeated` } : {}),
    },
    time,
  ];
  if (!isOver(job)) {
    figures.push({ name: "Left", value: pace.leftS === undefined ? "–" : `≈ ${duration(pace.leftS)}` });
    figures.push({ name: "At work", value: count(running), more: "mini-batches" });
  } else if (rows)
    figures.push({ name: "Rows", value: short(rows), ...(job.output ? { more: bytes(job.output.bytes) } : {}) });
  if (lost) figures.push({ name: "Lost nodes", value: count(lost), more: "deliveries made again", isBad: true });
  return figures;
}
