// Why a job doesn't run now: the conditions that are not met; who has the workers, and how many jobs wait beside it.

import type { JSX } from "preact";
import { useEvery } from "../../api/every";
import { getJson, type Page } from "../../api/http";
import { useLoaded } from "../../api/loaded";
import { apiPath, jobPath } from "../../api/paths";
import type { Explanation, Job, JobSummaryPage, Node, WorkForJob } from "../../api/types";
import { Prose } from "../../parts/prose";
import { counted } from "../../words/numbers";
import { ended } from "../../words/sentence";
import { clock, duration } from "../../words/times";

const EVERY_MS = 5000;

const sum = (numbers: number[]): number => numbers.reduce((total, each) => total + each, 0);

export function Explained({ job }: { job: Job }): JSX.Element | null {
  const { value } = useLoaded(
    `${job.id} ${job.paused}`,
    (signal) => getJson<Explanation>(`${jobPath(job.id)}/explanation`, signal),
    useEvery(EVERY_MS),
  );
  if (!value || value.runs) return null;
  const [first, ...others] = value.conditions.filter(({ state }) => state !== "met");
  // Who has the workers is told by name; anything else that is missing, in the server's words.
  const isBehind = first?.name === "slots";
  return (
    <div class="why">
      {isBehind ? (
        <Holders job={job} />
      ) : (
        <p>
          <Prose text={`Why: ${value.answer}`} />
        </p>
      )}
      {isBehind && first.left_s !== null && (
        <p>
          It gets a worker in about {duration(first.left_s)}, at about {clock(Date.now() + first.left_s * 1000)}.
        </p>
      )}
      {value.advice && (
        <p>
          <b>What to do:</b> <Prose text={ended(value.advice)} />
        </p>
      )}
      {others.length > 0 && (
        <ul>
          {others.map(({ name, text, left_s }) => (
            <li key={name}>
              <Prose text={text} />
              {left_s !== null && `, about ${duration(left_s)}`}
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

function Holders({ job }: { job: Job }): JSX.Element | null {
  const compute = String(job.spec.compute ?? "");
  const round = useEvery(EVERY_MS);
  const { value } = useLoaded("holders", (signal) => getJson<Page<Node>>(apiPath("/nodes"), signal), round);
  const jobs = useLoaded(
    "holders",
    (signal) => getJson<JobSummaryPage>(apiPath("/job-summaries", { status: "queued", limit: 1 }), signal),
    round,
  );
  if (!value) return null;
  // Workers of other computes are of no use to it.
  const nodes = value.items.filter((node) => node.state === "ready" && node.compute === compute);
  const slots = sum(nodes.map((node) => node.slots));
  const held = new Map<string, WorkForJob>();
  for (const each of nodes.flatMap((node) => node.work))
    held.set(each.job, { ...each, workers: each.workers + (held.get(each.job)?.workers ?? 0) });
  held.delete(job.id);
  const named = [...held.values()].sort((one, other) => other.workers - one.workers);
  // Jobs of others may have workers, too, though one doesn't see what they are.
  const unnamed =
    sum(nodes.map(({ busy }) => busy)) - sum(nodes.flatMap(({ work }) => work.map((each) => each.workers)));
  const { waiting = 0, total = 0 } = jobs.value ?? {};
  const others = waiting + total - 1;
  return (
    <>
      <p class="links">
        {named.length || unnamed > 0
          ? `Of ${counted(slots, "worker")} ${compute ? `of ${compute}` : "of the cluster"}, at work are: `
          : "No other job is at work."}
        {named.map(({ job: id, name, workers, owner }) => (
          <span key={id}>
            {workers} for <a href={`/jobs/${id}`}>{name || id}</a>
            {owner && ` of ${owner}`}
          </span>
        ))}
        {unnamed > 0 && <span>{unnamed} for jobs of others</span>}
      </p>
      {others > 0 && (
        <p>
          {counted(others, "other job waits", "other jobs wait")} for workers, too: each that comes free goes to the
          owner and the job with the least of their share.
        </p>
      )}
    </>
  );
}
