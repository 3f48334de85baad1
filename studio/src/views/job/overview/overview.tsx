// How a job stands at a glance.

import type { JSX } from "preact";
import type { TabProps } from "../job_page";
import { AdviceCard } from "../advice/advice_card";
import { Errors } from "./errors";
import { Metrics } from "./metrics";
import { Notes } from "./notes";
import { Phases } from "./phases";
import { PipelineOutputs } from "./pipeline_outputs";
import { Steps } from "./steps";
import { ThroughputCard } from "./throughput";

export function Overview({ job, live, now }: TabProps): JSX.Element {
  if (job.type === "pipeline")
    return (
      <div class="grid">
        <Steps job={job} now={now} />
        <PipelineOutputs job={job} />
        <Notes job={job} />
      </div>
    );
  return (
    <div class="grid">
      <AdviceCard job={job} />
      <Phases job={job} now={now} />
      <ThroughputCard job={job} revision={live.revision.value} />
      <Errors job={job} revision={live.revision.value} />
      <Metrics job={job} />
      <Notes job={job} />
    </div>
  );
}
