// Which jobs a text is about: all of its words are in the name, the id or the tags of a job.

import type { Job } from "../../api/types";

export function tagsOf(job: Job): string[] {
  const tags = job.spec["tags"];
  if (typeof tags !== "object" || tags === null) return [];
  return Object.entries(tags).map(([name, value]) =>
    value === "" || value === null ? name : `${name}=${String(value)}`,
  );
}

export function matches(job: Job, text: string): boolean {
  const said = [job.name, job.id, job.type, ...tagsOf(job)].join(" ").toLowerCase();
  return text
    .toLowerCase()
    .split(/\s+/)
    .every((word) => said.includes(word));
}
