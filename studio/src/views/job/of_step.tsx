// A tab of a pipeline that shows one of its steps, as the page of that step's own job does.

import type { ComponentType, JSX } from "preact";
import { useLiveJob } from "../../api/live";
import type { PipelineStep } from "../../api/types";
import { Choice } from "../../parts/choice";
import { Empty, Loading } from "../../parts/notice";
import { kindOf } from "../../words/states";
import { ask, place } from "../../shell/router";
import type { TabProps } from "./tab_props";

/** The step that is looked at first: what failed, else what runs. */
const KINDS = ["failed", "running"];

export const ofStep = (View: ComponentType<TabProps>): ComponentType<TabProps> =>
  function OfStep({ job, now }) {
    const steps = job.steps.filter((step) => step.job && step.type === "parallel");
    const first = KINDS.map((kind) => steps.find(({ state }) => kindOf(state) === kind)).find(Boolean) ?? steps[0];
    const chosen = steps.find(({ name }) => name === place.value.query.get("step")) ?? first;
    if (!chosen) return <Empty>No step with mini-batches has begun yet.</Empty>;
    return (
      <div class="stack">
        <Choice
          label="Step"
          value={chosen.name}
          options={Object.fromEntries(steps.map(({ name }) => [name, name]))}
          onChange={(step) => ask({ step, id: undefined, node: undefined })}
        />
        <Followed key={chosen.job} view={View} step={chosen} now={now} />
      </div>
    );
  };

function Followed({
  view: View,
  step,
  now,
}: {
  view: ComponentType<TabProps>;
  step: PipelineStep;
  now: number;
}): JSX.Element {
  const live = useLiveJob(step.job!);
  return live.job.value ? <View job={live.job.value} live={live} now={now} /> : <Loading />;
}
