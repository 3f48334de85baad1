// In which functions the workers have spent their time: a table, and the calls that lead there as an icicle.

import type { JSX } from "preact";
import { getJson } from "../../../api/http";
import { useLoaded } from "../../../api/loaded";
import { jobPath } from "../../../api/paths";
import type { Profile } from "../../../api/types";
import { Card } from "../../../parts/card";
import { Choice } from "../../../parts/choice";
import { Empty, Shown } from "../../../parts/notice";
import { ask, place } from "../../../shell/router";
import { count, counted, percent } from "../../../words/numbers";
import { duration } from "../../../words/times";
import type { TabProps } from "../tab_props";
import { Icicle } from "./icicle";

const SORTS = { "": "with what it calls", own: "by itself", calls: "calls" };

export function ProfileTab({ job, live }: TabProps): JSX.Element {
  const { query } = place.value;
  const [sort, worker] = [query.get("sort") ?? "", query.get("worker") ?? ""];
  const [node = "", process = ""] = worker.split("/");
  const path = jobPath(job.id, "/profile", { node, process, sort: sort || "cumulative" });
  const loaded = useLoaded(
    job.id,
    (signal) => getJson<Profile>(path, signal),
    live.revision.value,
    `${path} ${job.state}`,
  );
  return (
    <Shown of={loaded}>
      {(profile) =>
        profile.items.length ? (
          <div class="stack">
            <WorkerChoice profile={profile} worker={worker} />
            <Icicle job={job} node={node} process={process} />
            <Card
              title={`${counted(profile.count, "function")}, ${duration(profile.total_s)}`}
              aside={
                <Choice label="Most first" value={sort} options={SORTS} onChange={(value) => ask({ sort: value })} />
              }
            >
              <Functions profile={profile} />
            </Card>
          </div>
        ) : (
          <Empty>There is no profile yet: workers write it while the job runs, and at their end.</Empty>
        )
      }
    </Shown>
  );
}

function WorkerChoice({ profile, worker }: { profile: Profile; worker: string }): JSX.Element {
  return (
    <label class="pick">
      Worker{" "}
      <select value={worker} onChange={(event) => ask({ worker: event.currentTarget.value })}>
        <option value="">all together</option>
        {worker && !profile.workers.length && <option>{worker}</option>}
        {profile.workers.map(({ node, process }) => (
          <option key={`${node}/${process}`}>{`${node}/${process}`}</option>
        ))}
      </select>
    </label>
  );
}

function Functions({ profile }: { profile: Profile }): JSX.Element {
  return (
    <div class="scroll tall" tabIndex={0} role="region" aria-label="Table of functions">
      <table>
        <thead>
          <tr>
            <th scope="col">Function</th>
            <th scope="col" class="number">
              Share
            </th>
            <th scope="col" class="number">
              With what it calls
            </th>
            <th scope="col" class="number">
              By itself
            </th>
            <th scope="col" class="number">
              Calls
            </th>
          </tr>
        </thead>
        <tbody>
          {profile.items.map((each) => (
            <tr key={`${each.file} ${each.line} ${each.function}`}>
              <td>
                <code>{each.function}</code>
                {each.file && (
                  <span class="sub">
                    {" "}
                    {each.file}:{each.line}
                  </span>
                )}
              </td>
              <td class="number">
                {profile.total_s ? percent(Math.min(1, each.cumulative_s / profile.total_s)) : "–"}
              </td>
              <td class="number">{duration(each.cumulative_s)}</td>
              <td class="number">{duration(each.own_s)}</td>
              <td class="number">{count(each.calls)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
