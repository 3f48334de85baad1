// The tabs of a job, each with a path of its own.

import type { ComponentType, JSX } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import type { Job } from "../../api/types";
import { lazy } from "../../parts/lazy";
import type { TabProps } from "./tab_props";
import { Logs } from "./logs/logs";
import { MiniBatches } from "./mini_batches/mini_batches";
import { ofStep } from "./of_step";
import { Overview } from "./overview/overview";
import { StepsInTime } from "./timeline/steps_in_time";
import { TimelineTab } from "./timeline/timeline_tab";

const moreTabs = () => import("./more_tabs");
const AdviceTab = lazy(async () => (await moreTabs()).AdviceTab);
const Events = lazy(async () => (await moreTabs()).Events);
const Outputs = lazy(async () => (await moreTabs()).Outputs);
const Parameters = lazy(async () => (await moreTabs()).Parameters);
const ProfileTab = lazy(async () => (await moreTabs()).ProfileTab);
const Resources = lazy(async () => (await moreTabs()).Resources);

export interface Tab {
  path: string;
  title: string;
  view: ComponentType<TabProps>;
}

const OVERVIEW: Tab = { path: "", title: "Overview", view: Overview };
const OF_MINI_BATCHES: Tab[] = [
  { path: "mini-batches", title: "Mini-batches", view: MiniBatches },
  { path: "timeline", title: "Timeline", view: TimelineTab },
  { path: "advice", title: "Advice", view: AdviceTab },
  { path: "resources", title: "Resources", view: Resources },
];
/** A pipeline has no mini-batches: one chooses whose. */
const OF_PIPELINES: Tab[] = OF_MINI_BATCHES.map((each) =>
  each.path === "timeline" ? { ...each, view: StepsInTime } : { ...each, view: ofStep(each.view) },
);
const PROFILE: Tab = { path: "profile", title: "Profile", view: ProfileTab };
const OF_ALL: Tab[] = [
  { path: "logs", title: "Logs", view: Logs },
  { path: "outputs", title: "Outputs", view: Outputs },
  { path: "parameters", title: "Parameters", view: Parameters },
  { path: "events", title: "Events", view: Events },
];

export function tabsOf(job: Job): Tab[] {
  if (job.type === "pipeline") return [OVERVIEW, ...OF_PIPELINES, ...OF_ALL];
  return [OVERVIEW, ...OF_MINI_BATCHES, ...(job.spec["profiling_module"] ? [PROFILE] : []), ...OF_ALL];
}

export function Tabs({ job, tabs, current }: { job: Job; tabs: Tab[]; current: string }): JSX.Element {
  const own = useRef<HTMLElement>(null);
  // In a narrow window, the tabs scroll.
  useLayoutEffect(
    () => own.current?.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" }),
    [current],
  );
  return (
    <nav ref={own} class="tabs" aria-label="Parts of the job">
      {tabs.map(({ path, title }) => (
        <a
          key={path}
          href={`/jobs/${job.id}${path && "/"}${path}`}
          aria-current={path === current ? "page" : undefined}
        >
          {title}
        </a>
      ))}
    </nav>
  );
}
