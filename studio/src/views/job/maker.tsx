// Who or what has made a job: a person, a schedule, an endpoint. Each leads to all that it has made.

import type { JSX } from "preact";
import { getJson, type Page } from "../../api/http";
import { useLoaded } from "../../api/loaded";
import { apiPath } from "../../api/paths";
import type { JobSummary } from "../../api/types";

export function Maker({ id }: { id: string }): JSX.Element | null {
  const path = apiPath("/job-summaries", { q: id, limit: 1 });
  const { value } = useLoaded(path, (signal) => getJson<Page<JobSummary>>(path, signal));
  const job = value?.items.find((each) => each.id === id);
  if (!job) return null;
  return <MadeBy job={job} link={(filter) => `/jobs?${new URLSearchParams(filter).toString()}`} />;
}

/** `link` leads to the jobs that a filter lets through. */
export function MadeBy({
  job: { maker, owner },
  link,
}: {
  job: JobSummary;
  link: (filter: Record<string, string>) => string;
}): JSX.Element {
  return (
    <>
      {maker && maker.kind !== "pipeline" && (
        <a class="chip" href={link({ maker: `${maker.kind}:${maker.name}` })}>
          {maker.kind} {maker.name}
        </a>
      )}
      {owner && (
        <a class="chip" href={link({ owner })}>
          {owner}
        </a>
      )}
    </>
  );
}
