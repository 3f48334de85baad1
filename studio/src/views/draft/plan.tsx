// How much a job is before it runs: its mini-batches, the workers that are there, and about how long it takes.

import type { JSX } from "preact";
import { getJson, sendText } from "../../api/http";
import { useLoaded } from "../../api/loaded";
import { apiPath, jobPath } from "../../api/paths";
import type { Figures, JobExtent } from "../../api/types";
import { Loading, Trouble } from "../../parts/notice";
import { count, counted } from "../../words/numbers";
import { duration } from "../../words/times";

interface Known {
  extent: JobExtent;
  /** Of the job that is run again. */
  before: Figures | undefined;
}

export function Plan({ text, from }: { text: string; from: string }): JSX.Element {
  const { value, problem } = useLoaded("plan", async (signal): Promise<Known> => {
    const [extent, before] = await Promise.all([
      sendText<JobExtent>(apiPath("/jobs:plan"), text, signal),
      from ? getJson<Figures>(jobPath(from, "/figures"), signal).catch(() => undefined) : undefined,
    ]);
    return { extent, before };
  });
  if (problem) return <Trouble problem={problem} />;
  if (!value) return <Loading />;
  const { mini_batches, files, rows, is_complete, workers, nodes } = value.extent;
  const seconds = secondsOf(value);
  const more = is_complete ? "" : " or more";
  return (
    <dl class="pairs left plan">
      <div>
        <dt>Mini-batches</dt>
        <dd>
          {count(mini_batches)}
          {more}, of {rows ? counted(rows, "row") : counted(files, "file")}
        </dd>
      </div>
      <div>
        <dt>Workers</dt>
        <dd>{workers ? `${count(workers)} on ${counted(nodes, "node")}` : "no node is ready for it now"}</dd>
      </div>
      <div>
        <dt>Expected time</dt>
        <dd>
          {seconds === undefined
            ? "Not known before some have run. parallelrun plan --trial 30s finds out on your machine."
            : `About ${duration(seconds)}${more}, if a mini-batch takes as long as it did before.`}
        </dd>
      </div>
    </dl>
  );
}

/** By the workers that are there now, and the tries of the job before. */
export function secondsOf({ extent: { mini_batches, workers }, before }: Known): number | undefined {
  if (!before?.mini_batches || !workers) return undefined;
  const tried = (before.run_s + before.load_s + before.overhead_s) / before.mini_batches;
  const init = before.workers ? before.init_s / before.workers : 0;
  return init + Math.ceil(mini_batches / workers) * tried;
}
