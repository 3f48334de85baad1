// A job: what it is and how it stands, above the tab that the URL names.

import type { ComponentType, JSX } from "preact";
import { useNow } from "../../api/every";
import { isOver, useLiveJob, type LiveJob } from "../../api/live";
import { Loading, Trouble } from "../../parts/notice";
import { useTabTitle } from "../../shell/tab_title";
import { Lost } from "../lost";
import { Header } from "./header";
import { Overview } from "./overview/overview";
import type { TabProps } from "./tab_props";
import { Tabs, tabsOf } from "./tabs";

export function JobPage({ id, tab }: { id: string; tab: string }): JSX.Element {
  const live = useLiveJob(id);
  const job = live.job.value;
  const problem = live.problem.value;
  const now = useNow(job !== undefined && !isOver(job));
  useTabTitle(job, tab);
  if (!job)
    return (
      <div class="page">{problem && problem.status !== 401 ? <NoJob id={id} problem={problem} /> : <Loading />}</div>
    );

  const tabs = tabsOf(job);
  const View: ComponentType<TabProps> | undefined = tab ? tabs.find((each) => each.path === tab)?.view : Overview;
  return (
    <div class="page">
      <Header job={job} live={live} now={now} />
      <Tabs job={job} tabs={tabs} current={tab} />
      {View ? <View job={job} live={live} now={now} /> : <Lost />}
    </div>
  );
}

function NoJob({ id, problem }: { id: string; problem: NonNullable<LiveJob["problem"]["value"]> }): JSX.Element {
  return (
    <>
      <h1>{id}</h1>
      <Trouble problem={problem} />
      <p>
        <a href="/jobs">All jobs</a>
      </p>
    </>
  );
}
