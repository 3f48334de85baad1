// Some jobs side by side: how long they took and why, and the settings in which they differ. The first one is what the
// others are measured by.

import type { JSX } from "preact";
import { getJson } from "../../api/http";
import { useLoaded } from "../../api/loaded";
import { jobPath } from "../../api/paths";
import type { Compared, Comparison } from "../../api/types";
import { Card } from "../../parts/card";
import { Empty, Shown } from "../../parts/notice";
import { State } from "../../parts/state";
import { place } from "../../shell/router";
import { titleOf } from "../../words/title";
import { sideBySide, type SideBySide } from "./columns";
import { changeOf, FIGURES } from "./figures";

export const MOST = 8;

export function Compare(): JSX.Element {
  const ids = [...new Set((place.value.query.get("jobs") ?? "").split(",").filter(Boolean))].slice(0, MOST);
  return (
    <div class="page">
      <h1>Compare jobs</h1>
      {ids.length > 1 ? (
        <OfJobs key={ids.join(" ")} ids={ids} />
      ) : (
        <Empty>
          Choose two or more of the <a href="/jobs">jobs</a>.
        </Empty>
      )}
    </div>
  );
}

function OfJobs({ ids }: { ids: string[] }): JSX.Element {
  const [first = "", ...others] = ids;
  const loaded = useLoaded(ids.join(" "), async (signal) =>
    sideBySide(
      await Promise.all(others.map((other) => getJson<Comparison>(jobPath(first, "/comparison", { other }), signal))),
    ),
  );
  return (
    <Shown of={loaded}>
      {({ jobs, settings }) => (
        <div class="stack compare">
          <Card title="Figures">
            <Figures jobs={jobs} />
          </Card>
          <Card title="Settings that differ">
            {settings.length ? <Settings jobs={jobs} settings={settings} /> : <Empty>None does.</Empty>}
          </Card>
        </div>
      )}
    </Shown>
  );
}

function Heads({ first, jobs }: { first: string; jobs: Compared[] }): JSX.Element {
  return (
    <thead>
      <tr>
        <th scope="col">{first}</th>
        {jobs.map((job) => (
          <th key={job.id} scope="col" class="number">
            <a href={`/jobs/${job.id}`}>{titleOf(job)}</a> <State state={job.state} />
          </th>
        ))}
      </tr>
    </thead>
  );
}

function Figures({ jobs }: { jobs: Compared[] }): JSX.Element {
  return (
    <div class="scroll tall" tabIndex={0} role="region" aria-label="Table of figures">
      <table>
        <Heads first="Figure" jobs={jobs} />
        <tbody>
          {FIGURES.map((figure) => (
            <tr key={figure.name}>
              <th scope="row">{figure.title}</th>
              {jobs.map((job, at) => {
                const value = job.figures[figure.name] ?? null;
                // Whether a job that has failed was faster is no question.
                const areComparable = job.state === "completed" && jobs[0]?.state === "completed";
                const change = at
                  ? changeOf(figure, jobs[0]?.figures[figure.name] ?? null, value, areComparable)
                  : null;
                return (
                  <td key={job.id} class="number">
                    {value === null ? "–" : figure.format(value)}
                    {change && <span class={`sub ${change.kind}`}> {change.text}</span>}
                  </td>
                );
              })}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Settings({ jobs, settings }: SideBySide): JSX.Element {
  return (
    <div class="scroll tall" tabIndex={0} role="region" aria-label="Table of settings">
      <table>
        <Heads first="Setting" jobs={jobs} />
        <tbody>
          {settings.map(({ name, values }) => (
            <tr key={name}>
              <th scope="row">
                <code>{name}</code>
              </th>
              {values.map((value, index) => (
                <td key={index}>
                  <code>{typeof value === "string" ? value || "–" : JSON.stringify(value)}</code>
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
