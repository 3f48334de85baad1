// Two jobs side by side: how long they took and why, and the settings in which they differ.

import type { JSX } from "preact";
import { getJson } from "../../api/http";
import { useLoaded } from "../../api/loaded";
import { jobPath } from "../../api/paths";
import type { Comparison } from "../../api/types";
import { Card } from "../../parts/card";
import { Empty, Shown } from "../../parts/notice";
import { State } from "../../parts/state";
import { place } from "../../shell/router";
import { titleOf } from "../../words/title";
import { FIGURES } from "./figures";

export function Compare(): JSX.Element {
  const [one, other] = (place.value.query.get("jobs") ?? "").split(",");
  return (
    <div class="page">
      <h1>Compare jobs</h1>
      {one && other ? (
        <Both key={`${one} ${other}`} one={one} other={other} />
      ) : (
        <Empty>
          Choose two of the <a href="/jobs">jobs</a>.
        </Empty>
      )}
    </div>
  );
}

function Both({ one, other }: { one: string; other: string }): JSX.Element {
  const path = jobPath(one, "/comparison", { other });
  const loaded = useLoaded(path, (signal) => getJson<Comparison>(path, signal));
  return (
    <Shown of={loaded}>
      {({ jobs, settings }) => {
        // Whether a job that has failed was faster is no question.
        const areComparable = jobs.every(({ state }) => state === "completed");
        return (
          <div class="stack compare">
            <Card title="Figures">
              <div class="scroll tall" tabIndex={0} role="region" aria-label="Table of figures">
                <table>
                  <thead>
                    <tr>
                      <th scope="col">Figure</th>
                      {jobs.map((job) => (
                        <th key={job.id} scope="col" class="number">
                          <a href={`/jobs/${job.id}`}>{titleOf(job)}</a> <State state={job.state} />
                        </th>
                      ))}
                      <th scope="col" class="number">
                        Change
                      </th>
                    </tr>
                  </thead>
                  <tbody>
                    {FIGURES.map(({ name, title, format, isBetterLow }) => {
                      const [before, after] = jobs.map((job) => job.figures[name] ?? null);
                      return (
                        <tr key={name}>
                          <th scope="row">{title}</th>
                          <td class="number">{before == null ? "–" : format(before)}</td>
                          <td class="number">{after == null ? "–" : format(after)}</td>
                          <td class="number">
                            <Change
                              before={before ?? null}
                              after={after ?? null}
                              isBetterLow={areComparable ? isBetterLow : undefined}
                            />
                          </td>
                        </tr>
                      );
                    })}
                  </tbody>
                </table>
              </div>
            </Card>
            <Card title="Settings that differ">
              {settings.length ? (
                <div class="scroll tall" tabIndex={0} role="region" aria-label="Table of settings">
                  <table>
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
              ) : (
                <Empty>None does.</Empty>
              )}
            </Card>
          </div>
        );
      }}
    </Shown>
  );
}

/** Said in words, too: better and worse have no color alone. */
function Change({
  before,
  after,
  isBetterLow,
}: {
  before: number | null;
  after: number | null;
  isBetterLow: boolean | undefined;
}): JSX.Element | null {
  if (before === null || after === null || before === after || before === 0) return null;
  const share = after / before - 1;
  if (Math.abs(share) < 0.005) return null;
  const isBetter = isBetterLow === undefined ? undefined : share < 0 === isBetterLow;
  const word = isBetter === undefined ? "" : isBetter ? " better" : " worse";
  return (
    <span class={isBetter === false ? "bad" : isBetter ? "good" : ""}>
      {share > 0 ? "+" : "−"}
      {Math.abs(share) < 10 ? `${Math.round(Math.abs(share) * 100)} %` : `${Math.round(Math.abs(share) + 1)} times`}
      {word}
    </span>
  );
}
