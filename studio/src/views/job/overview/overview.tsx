// How a job stands at a glance.

import type { JSX } from "preact";
import type { TabProps } from "../tab_props";
import { AdviceCard } from "../advice/advice_card";
import { Errors } from "./errors";
import { Metrics } from "./metrics";
import { Notes } from "./notes";
import { Phases } from "./phases";
import { PipelineOutputs } from "./pipeline_outputs";
import { Steps } from "./steps";
import { ThroughputCard, useThroughput } from "./throughput";

export function Overview(props: TabProps): JSX.Element {
  const { job, now } = props;
  if (job.type !== "pipeline") return <OfMiniBatches {...props} />;
  return (
    <div class="grid">
      <Steps job={job} now={now} />
      <PipelineOutputs job={job} />
      <Notes job={job} />
    </div>
  );
}

function OfMiniBatches({ job, live, now }: TabProps): JSX.Element {
  const throughput = useThroughput(job, live.revision.value);
  return (
    <div class="grid">
      <Errors job={job} revision={live.revision.value} />
      <Phases job={job} now={now} throughput={throughput.value} />
      <ThroughputCard job={job} of={throughput} />
      <AdviceCard job={job} />
      <Metrics job={job} />
      <Notes job={job} />
    </div>
  );
}
