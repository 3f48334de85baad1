// The few numbers of a job that one looks for first.

import type { ComponentChildren, JSX } from "preact";
import { isOver } from "../../api/live";
import type { Job } from "../../api/types";
import { bytes, count, counted, rate, short } from "../../words/numbers";
import { itemsDecided, itemsFound, stepsIn, type Pace } from "../../words/pace";
import { lostItems } from "../../words/sentence";
import { clock, duration } from "../../words/times";

interface Figure {
  name: string;
  value: string;
  /** What is told beneath, each part by itself: what has failed is red, and nothing else. */
  more?: (string | false | { bad: string | false })[];
  isBad?: boolean;
}

export function Figures({ job, pace }: { job: Job; pace: Pace }): JSX.Element {
  return (
    <dl class="figures" tabIndex={0}>
      {figuresOf(job, pace).map(({ name, value, more = [], isBad }) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd class={isBad ? "bad" : ""}>
            {value}
            <More parts={more} />
          </dd>
        </div>
      ))}
    </dl>
  );
}

function More({ parts }: { parts: NonNullable<Figure["more"]> }): JSX.Element | null {
  const told: ComponentChildren[] = [];
  for (const part of parts) {
    const isPlain = typeof part !== "object";
    const text = isPlain ? part : part.bad;
    if (!text) continue;
    if (told.length) told.push(", ");
    told.push(isPlain ? text : <span class="bad">{text}</span>);
  }
  if (!told.length) return null;
  return <span class="sub">{told}</span>;
}

function figuresOf(job: Job, pace: Pace): Figure[] {
  const waited = `waited ${duration(pace.waitedS)}`;
  const time: Figure =
    isOver(job) || pace.elapsedS || !job.pace
      ? {
          name: isOver(job) ? "Took" : "Running for",
          value: pace.elapsedS ? duration(pace.elapsedS) : "–",
          // One that never had a mini-batch at work has waited from its submission on, not only while it took.
          ...(pace.waitedS > 1 && job.progress.worked_from ? { more: [waited] } : {}),
        }
      : { name: "Waits for", value: duration(pace.waitedS) };
  if (job.type === "pipeline") return [steps(job), time];
  const { done, failed, scheduled, listing_done, running, retried, lost, rows } = job.progress;
  const known = listing_done || isOver(job);
  const figures: Figure[] = [
    {
      name: "Mini-batches",
      value: count(done + failed),
      more: [known ? `of ${count(scheduled)}` : `${count(scheduled)} found so far`],
    },
    {
      name: "Items",
      value: short(itemsDecided(job)),
      more: [
        known && (!isOver(job) || itemsFound(job) > itemsDecided(job)) && `of ${short(itemsFound(job))}`,
        { bad: lostItems(job) > 0 && `${count(lostItems(job))} failed` },
      ],
    },
    { name: "Pace", value: rate(pace.itemsPerS) },
    {
      name: "Failed",
      value: count(failed),
      ...(failed ? { isBad: true } : {}),
      ...(retried ? { more: [`${counted(retried, "try", "tries")} repeated`] } : {}),
    },
    time,
  ];
  if (!isOver(job)) {
    figures.push({
      name: "Left",
      value: pace.leftS === undefined ? "–" : `≈ ${duration(pace.leftS)}`,
      ...(pace.ends ? { more: [`ends about ${clock(pace.ends)}`] } : {}),
    });
    figures.push({ name: "At work", value: count(running), more: ["mini-batches"] });
  } else if (rows)
    figures.push({ name: "Rows", value: short(rows), ...(job.output ? { more: [bytes(job.output.bytes)] } : {}) });
  if (lost) figures.push({ name: "Lost nodes", value: count(lost), more: ["deliveries made again"], isBad: true });
  return figures;
}

function steps(job: Job): Figure {
  const more = ["failed", "canceled", "skipped", "running", "waiting"].flatMap((state) => {
    const steps = stepsIn(job, state);
    const text = `${count(steps)} ${state}`;
    return steps ? [state === "failed" ? { bad: text } : text] : [];
  });
  return { name: "Steps done", value: `${count(stepsIn(job, "completed"))} of ${count(job.steps.length)}`, more };
}
