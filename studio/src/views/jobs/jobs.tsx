// All jobs, the newest first. What is filtered is in the URL.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { useEvery, useNow } from "../../api/every";
import { getJson, type Page } from "../../api/http";
import { isOver } from "../../api/live";
import { useLoaded } from "../../api/loaded";
import { apiPath } from "../../api/paths";
import type { Job } from "../../api/types";
import { Empty, Shown } from "../../parts/notice";
import { ask, place } from "../../shell/router";
import { Filters } from "./filters";
import { JobRow } from "./job_row";
import { matches } from "./matching";

const EVERY_MS = 2000;
const PAGE = 50;

export function Jobs(): JSX.Element {
  const { query } = place.value;
  const [state, text, parent] = [query.get("state") ?? "", query.get("q") ?? "", query.get("parent") ?? ""];
  const [pages, setPages] = useState(1);
  const [chosen, choose] = useState<string[]>([]);
  const jobs = useLoaded(
    `${state} ${parent}`,
    (signal) => load(state, parent, pages, signal),
    useEvery(EVERY_MS),
    String(pages),
  );
  const now = useNow(jobs.value?.items.some((job) => !isOver(job)) ?? false);
  const toggle = (id: string): void =>
    choose((before) => (before.includes(id) ? before.filter((each) => each !== id) : [...before.slice(-1), id]));

  return (
    <div class="page">
      <div class="heading">
        <h1>Jobs</h1>
        {chosen.length === 2 && (
          <a class="button" href={`/compare?jobs=${chosen.join(",")}`}>
            Compare these two
          </a>
        )}
      </div>
      <Filters state={state} text={text} onText={(q) => ask({ q })} />
      <Shown of={jobs}>
        {({ items, next_page_token }) => {
          const shown = items.filter((job) => matches(job, text));
          return (
            <>
              {shown.length ? (
                <Table jobs={shown} now={now} chosen={chosen} toggle={toggle} />
              ) : (
                <None isFiltered={Boolean(state || text || parent)} />
              )}
              {next_page_token && (
                <p class="more">
                  <button type="button" onClick={() => setPages(pages + 1)}>
                    Show older jobs
                  </button>
                </p>
              )}
            </>
          );
        }}
      </Shown>
    </div>
  );
}

async function load(status: string, parent: string, pages: number, signal: AbortSignal): Promise<Page<Job>> {
  let page: Page<Job> = { items: [], next_page_token: "" };
  for (let number = 0; number < pages && page.next_page_token !== null; number++) {
    const path = apiPath("/jobs", { status, parent, limit: PAGE, page_token: page.next_page_token });
    const next = await getJson<Page<Job>>(path, signal);
    page = { ...next, items: [...page.items, ...next.items] };
  }
  return page;
}

interface TableProps {
  jobs: Job[];
  now: number;
  chosen: string[];
  toggle: (id: string) => void;
}

function Table({ jobs, now, chosen, toggle }: TableProps): JSX.Element {
  return (
    <table class="jobs">
      <caption class="unseen">Jobs, the newest first</caption>
      <thead>
        <tr>
          <th scope="col">
            <span class="unseen">Compare</span>
          </th>
          <th scope="col">Job</th>
          <th scope="col">State</th>
          <th scope="col">Progress</th>
          <th scope="col" class="number">
            Items
          </th>
          <th scope="col" class="number">
            Pace
          </th>
          <th scope="col" class="number">
            Time
          </th>
          <th scope="col" class="number">
            Submitted
          </th>
        </tr>
      </thead>
      <tbody>
        {jobs.map((job) => (
          <JobRow key={job.id} job={job} now={now} isChosen={chosen.includes(job.id)} toggle={() => toggle(job.id)} />
        ))}
      </tbody>
    </table>
  );
}

function None({ isFiltered }: { isFiltered: boolean }): JSX.Element {
  if (isFiltered)
    return (
      <Empty>
        No job is like this. <a href="/jobs">Show all jobs</a>
      </Empty>
    );
  return (
    <Empty>
      No job yet. Submit the first one with <code>parallelrun job create --file job.yml</code>: it appears here at once.
    </Empty>
  );
}
