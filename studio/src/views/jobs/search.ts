// What is looked for among the jobs, as the URL says it, and the question to the server that this is.

import { getJson } from "../../api/http";
import { apiPath, type Query } from "../../api/paths";
import type { JobSummary, JobSummaryPage } from "../../api/types";

const PAGE = 50;

/** How long ago a job may have been submitted: what each is called, and its seconds. */
export const RANGES: Record<string, { title: string; seconds: number }> = {
  "1h": { title: "last hour", seconds: 3600 },
  "24h": { title: "last day", seconds: 86_400 },
  "7d": { title: "last week", seconds: 7 * 86_400 },
  "30d": { title: "last 30 days", seconds: 30 * 86_400 },
};

/** What the server filters by beside words, a state and a time, each by a word in the URL. */
export const NARROWING = ["maker", "owner", "compute", "asset", "tag", "parent"];

export function questionOf(query: URLSearchParams, now: number): Query {
  const range = RANGES[query.get("range") ?? ""];
  return {
    q: query.get("q") ?? "",
    status: query.get("state") ?? "",
    order_by: query.get("order") ?? "",
    ascending: query.get("up") ? "true" : "",
    since: range ? new Date(now - range.seconds * 1000).toISOString() : "",
    ...Object.fromEntries(NARROWING.map((name) => [name, query.get(name) ?? ""])),
  };
}

/** What was asked for, without what changes with every moment. */
export const keyOf = (query: URLSearchParams): string => query.toString();

export async function search(question: Query, pages: number, signal: AbortSignal): Promise<JobSummaryPage> {
  let page = await getJson<JobSummaryPage>(apiPath("/job-summaries", { ...question, limit: PAGE }), signal);
  const items: JobSummary[] = [...page.items];
  for (let number = 1; number < pages && page.next_page_token; number++) {
    const more = { ...question, limit: PAGE, page_token: page.next_page_token };
    page = await getJson<JobSummaryPage>(apiPath("/job-summaries", more), signal);
    items.push(...page.items);
  }
  return { ...page, items };
}
