// The tabs of a job, each with a path of its own.

import type { ComponentType, JSX } from "preact";
import type { Job } from "../../api/types";
import type { TabProps } from "./job_page";
import { Logs } from "./logs/logs";
import { MiniBatches } from "./mini_batches/mini_batches";
import { Outputs } from "./outputs";
import { Overview } from "./overview/overview";
import { Parameters } from "./parameters";
import { TimelineTab } from "./timeline/timeline_tab";

export interface Tab {
  path: string;
  title: string;
  view: ComponentType<TabProps>;
}

const OVERVIEW: Tab = { path: "", title: "Overview", view: Overview };
const OF_MINI_BATCHES: Tab[] = [
  { path: "mini-batches", title: "Mini-batches", view: MiniBatches },
  { path: "timeline", title: "Timeline", view: TimelineTab },
];
const OF_ALL: Tab[] = [
  { path: "logs", title: "Logs", view: Logs },
  { path: "outputs", title: "Outputs", view: Outputs },
  { path: "parameters", title: "Parameters", view: Parameters },
];

export function tabsOf(job: Job): Tab[] {
  return [OVERVIEW, ...(job.type === "pipeline" ? [] : OF_MINI_BATCHES), ...OF_ALL];
}

export function Tabs({ job, tabs, current }: { job: Job; tabs: Tab[]; current: string }): JSX.Element {
  return (
    <nav class="tabs" aria-label="Parts of the job">
      {tabs.map(({ path, title }) => (
        <a key={path} href={`/jobs/${job.id}${path && "/"}${path}`} aria-current={path === current ? "page" : undefined}>
          {title}
        </a>
      ))}
    </nav>
  );
}
