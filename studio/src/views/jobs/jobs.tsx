// All jobs, the newest first. What is filtered and how it is sorted is in the URL; the server does it.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { useEvery, useNow } from "../../api/every";
import { isOver } from "../../api/live";
import { useLoaded } from "../../api/loaded";
import type { JobSummary } from "../../api/types";
import { lazy } from "../../parts/lazy";
import { Empty, Shown } from "../../parts/notice";
import { linkWith, place } from "../../shell/router";
import { count, counted } from "../../words/numbers";
import { MOST } from "../compare/compare";
import { Filters } from "./filters";
import { FirstRun } from "./first_run";
import { JobRow } from "./job_row";
import { keyOf, questionOf, search } from "./search";

const EVERY_MS = 2000;
const Bulk = lazy(async () => (await import("./bulk")).Bulk);

export function Jobs(): JSX.Element {
  const { query } = place.value;
  const key = keyOf(query);
  const [pages, setPages] = useState(1);
  const [ticked, tick] = useState<JobSummary[]>([]);
  const jobs = useLoaded(
    "jobs",
    (signal) => search(questionOf(query, Date.now()), pages, signal),
    useEvery(EVERY_MS),
    `${pages} ${key}`,
  );
  const now = useNow(jobs.value?.items.some((job) => !isOver(job)) ?? false);
  // Those that another filter hides are as they were when it was chosen.
  const shown = new Map(jobs.value?.items.map((job) => [job.id, job]));
  const chosen = ticked.map((job) => shown.get(job.id) ?? job);
  const toggle = (job: JobSummary): void =>
    tick((before) => {
      const others = before.filter(({ id }) => id !== job.id);
      return others.length < before.length ? others : [...before, job];
    });
  const done = (gone: string[]): void => {
    tick((before) => before.filter(({ id }) => !gone.includes(id)));
    jobs.reload();
  };

  return (
    <div class="page">
      <div class="heading">
        <h1>Jobs</h1>
        <a class="button" href="/new">
          New job
        </a>
        {chosen.length > 0 && (
          <p class="chosen">
            <b>{count(chosen.length)} chosen</b>
            {chosen.length > 1 && chosen.length <= MOST ? (
              <a class="button" href={`/compare?jobs=${chosen.map(({ id }) => id).join(",")}`}>
                {chosen.length === 2 ? "Compare these two" : `Compare these ${count(chosen.length)}`}
              </a>
            ) : (
              <span class="sub">choose two to {count(MOST)} to compare them</span>
            )}
            <Bulk chosen={chosen} onDone={done} />
            <button type="button" class="quiet" onClick={() => tick([])}>
              Choose none
            </button>
          </p>
        )}
      </div>
      <Filters counts={jobs.value?.by_state} waiting={jobs.value?.waiting ?? 0} />
      <Shown of={jobs}>
        {({ items, total, next_page_token }) => (
          <>
            {items.length ? (
              <Table jobs={items} now={now} chosen={chosen} toggle={toggle} />
            ) : key ? (
              <Empty>
                No job is like this. <a href="/jobs">Show all jobs</a>
              </Empty>
            ) : (
              <FirstRun />
            )}
            {items.length > 0 && (
              <p class="more">
                <span class="sub">
                  {items.length < total ? `${count(items.length)} of ${counted(total, "job")}` : counted(total, "job")}
                </span>
                {next_page_token && (
                  <button type="button" onClick={() => setPages(pages + 1)}>
                    Show more jobs
                  </button>
                )}
              </p>
            )}
          </>
        )}
      </Shown>
    </div>
  );
}

interface TableProps {
  jobs: JobSummary[];
  now: number;
  chosen: JobSummary[];
  toggle: (job: JobSummary) => void;
}

/** Its columns: by what the server sorts each, and whether its smallest comes first when it is asked for. */
const COLUMNS: { title: string; order?: string; isNumber?: boolean; isUp?: boolean }[] = [
  { title: "Job", order: "name", isUp: true },
  { title: "State", order: "state", isUp: true },
  { title: "Progress" },
  { title: "Items", order: "items", isNumber: true },
  { title: "Pace", order: "pace", isNumber: true },
  { title: "Time", order: "time", isNumber: true },
  { title: "Submitted", order: "submitted", isNumber: true },
];

function Table({ jobs, now, chosen, toggle }: TableProps): JSX.Element {
  const { query } = place.value;
  const current = query.get("order") ?? "submitted";
  const isUp = Boolean(query.get("up"));
  const ids = new Set(chosen.map(({ id }) => id));
  const areAll = jobs.every(({ id }) => ids.has(id));
  return (
    <table class="jobs">
      <caption class="unseen">Jobs</caption>
      <thead>
        <tr>
          <th scope="col" class="tick">
            <input
              type="checkbox"
              aria-label="Choose all that are shown"
              checked={areAll}
              onChange={() => jobs.filter(({ id }) => ids.has(id) === areAll).forEach(toggle)}
            />
          </th>
          {COLUMNS.map(({ title, order, isNumber, isUp: isUpFirst = false }) => {
            const isCurrent = order === current;
            const next = isCurrent ? !isUp : isUpFirst;
            return (
              <th
                key={title}
                scope="col"
                class={isNumber ? "number" : ""}
                aria-sort={isCurrent ? (isUp ? "ascending" : "descending") : undefined}
              >
                {order ? (
                  <a href={linkWith({ order: order === "submitted" ? "" : order, up: next ? "1" : "" })}>
                    {title}
                    {isCurrent && <span aria-hidden="true">{isUp ? " ↑" : " ↓"}</span>}
                  </a>
                ) : (
                  title
                )}
              </th>
            );
          })}
        </tr>
      </thead>
      <tbody>
        {jobs.map((job) => (
          <JobRow key={job.id} job={job} now={now} isChosen={ids.has(job.id)} toggle={() => toggle(job)} />
        ))}
      </tbody>
    </table>
  );
}
