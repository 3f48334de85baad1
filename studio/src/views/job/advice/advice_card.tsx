// What would make the job faster, cheaper or safer: what was measured, what it saves, and the exact change.

import type { JSX } from "preact";
import { getJson } from "../../../api/http";
import { useLoaded } from "../../../api/loaded";
import { jobPath } from "../../../api/paths";
import type { Advice, AdviceFinding, Job } from "../../../api/types";
import { Card } from "../../../parts/card";
import { Copy } from "../../../parts/copy";
import { Icon } from "../../../parts/icon";
import { Prose } from "../../../parts/prose";
import { ask, place } from "../../../shell/router";
import { percent } from "../../../words/numbers";
import { duration } from "../../../words/times";
import { linkToMiniBatch } from "../links";

/** Of a job that was only tried out, whoever looks wants to know all. */
const SMALL_S = "1";

/** Advice changes slowly: it is asked for again with each state, and with each so many mini-batches. */
const MINI_BATCHES = 200;

/** Nothing when nothing is worth a change, unless that is to be said. */
export function AdviceCard({ job, saysNothing = false }: { job: Job; saysNothing?: boolean }): JSX.Element | null {
  const { done, failed } = job.progress;
  const round = Math.floor((done + failed) / MINI_BATCHES);
  const isAll = saysNothing && place.value.query.get("savings") === "all";
  const path = jobPath(job.id, "/advice", isAll ? { min_saving_s: SMALL_S } : {});
  const { value } = useLoaded(path, (signal) => getJson<Advice>(path, signal), round, job.state);
  if (!value || (!value.findings.length && !saysNothing)) return null;
  const command = `parallelrun job advise ${job.id}${isAll ? ` --min-saving ${SMALL_S}s` : ""}`;
  return (
    <Card
      title="Advice"
      kind="wide advice"
      aside={
        <Copy text={command} label="Copy the command that gives this advice">
          CLI
        </Copy>
      }
    >
      <p>
        <Prose text={value.summary} />
      </p>
      {saysNothing && (isAll || !value.findings.length) && (
        <button type="button" class="quiet" onClick={() => ask({ savings: isAll ? undefined : "all" })}>
          {isAll ? "Show only what saves a minute" : "Show what saves less"}
        </button>
      )}
      <ul>
        {value.findings.map((finding) => (
          <OneFinding key={finding.id} job={job} of={finding} />
        ))}
      </ul>
    </Card>
  );
}

function OneFinding({ job, of }: { job: Job; of: AdviceFinding }): JSX.Element {
  const change = Object.entries(of.change.set)
    .map(([name, value]) => `--set ${name}=${value}`)
    .join(" ");
  return (
    <li class={of.severity}>
      <Icon name={of.saves === "risk" ? "warning" : "bulb"} />
      <div>
        <p class="heading">
          <b>
            <Prose text={of.title} />
          </b>
          <span class="chip">{savingOf(of)}</span>
        </p>
        <p>
          <Prose text={of.change.text} />
        </p>
        {change && (
          <p class="command">
            <code>{change}</code>
            <Copy text={change} label="Copy this change" />
          </p>
        )}
        <details>
          <summary>What was measured</summary>
          <ul class="evidence">
            {of.evidence.map((each) => (
              <li key={each}>
                <Prose text={each} />
              </li>
            ))}
          </ul>
          {of.mini_batches.length > 0 && (
            <p class="links">
              Mini-batches:{" "}
              {of.mini_batches.slice(0, 10).map((id) => (
                <a key={id} href={linkToMiniBatch(job.id, id)}>
                  {id}
                </a>
              ))}
            </p>
          )}
          {of.nodes.length > 0 && <p>Nodes: {of.nodes.join(", ")}</p>}
        </details>
      </div>
    </li>
  );
}

function savingOf(of: AdviceFinding): string {
  if (of.saves === "risk") return "endangers the job";
  if (of.saves === "cost") return `saves ${duration(of.saving_node_s)} of nodes`;
  return `saves ${duration(of.saving_s)} (${percent(of.saving_share)})`;
}
