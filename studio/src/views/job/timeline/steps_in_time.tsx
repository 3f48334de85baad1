// The steps of a pipeline in time: a bar for each, on one clock.

import type { JSX } from "preact";
import { Card } from "../../../parts/card";
import { Empty } from "../../../parts/notice";
import { Coded } from "../../../parts/prose";
import { Mark } from "../../../parts/state";
import { kindOf } from "../../../words/states";
import { clock, duration } from "../../../words/times";
import { linkToLog } from "../links";
import type { TabProps } from "../tab_props";

export function StepsInTime({ job, now }: TabProps): JSX.Element {
  const begun = job.steps.filter((step) => step.started);
  const from = Math.min(...begun.map((step) => Date.parse(step.started!)));
  const to = Math.max(...begun.map((step) => (step.ended ? Date.parse(step.ended) : now)));
  const share = (time: number): number => ((time - from) / Math.max(1, to - from)) * 100;
  if (!begun.length) return <Empty>No step has begun yet.</Empty>;
  return (
    <Card title="Steps in time" aside={<span class="sub">{`${clock(from)} to ${clock(to)}`}</span>}>
      <ol class="gantt">
        {job.steps.map((step) => {
          const begin = step.started ? Date.parse(step.started) : undefined;
          const end = step.ended ? Date.parse(step.ended) : now;
          return (
            <li key={step.name}>
              <span class="name">
                <Mark state={step.state} />
                {step.job ? <a href={`/jobs/${step.job}`}>{step.name}</a> : step.name}
              </span>
              <span class="lane">
                {begin !== undefined && (
                  <i
                    class={kindOf(step.state)}
                    style={{ left: `${share(begin)}%`, width: `${Math.max(0.5, share(end) - share(begin))}%` }}
                  />
                )}
              </span>
              <span class="sub">
                {begin === undefined ? step.state : `${clock(begin)}, ${duration((end - begin) / 1000)}`}
                {step.why && <Coded text={` · ${step.why}`} />}
                {step.state === "failed" && step.job && (
                  <>
                    {" · "}
                    <a href={linkToLog(step.job, "job_result.txt")}>Open its log</a>
                  </>
                )}
              </span>
            </li>
          );
        })}
      </ol>
    </Card>
  );
}
