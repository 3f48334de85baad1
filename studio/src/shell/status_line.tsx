// How the cluster stands, at the foot of every page: its workers, the jobs that wait, the room on its disks, its release.

import type { JSX } from "preact";
import { useEvery } from "../api/every";
import { getJson, mustSignIn } from "../api/http";
import { useLoaded } from "../api/loaded";
import { apiPath } from "../api/paths";
import type { JobSummaryPage, NodeList } from "../api/types";
import { bytes, count, counted } from "../words/numbers";

const EVERY_MS = 10_000;

export function StatusLine(): JSX.Element | null {
  const round = useEvery(EVERY_MS);
  const nodes = useLoaded("status", (signal) => getJson<NodeList>(apiPath("/nodes"), signal), round);
  const queued = useLoaded(
    "status",
    (signal) => getJson<JobSummaryPage>(apiPath("/job-summaries", { status: "queued", limit: 1 }), signal),
    round,
  );
  if (!nodes.value || mustSignIn.value) return null;
  const alive = nodes.value.items.filter(({ state }) => state !== "lost");
  const sum = (of: (node: (typeof alive)[number]) => number): number =>
    alive.reduce((total, node) => total + of(node), 0);
  const [slots, busy] = [sum(({ slots }) => slots), sum(({ busy }) => busy)];
  const least = Math.min(...alive.map(({ disk_free_bytes }) => disk_free_bytes));
  const { total = 0, by_state = {}, waiting = 0, paused = 0 } = queued.value ?? {};
  return (
    <footer class="status-line">
      <a href="/nodes">
        {alive.length ? `${count(busy)} of ${counted(slots, "worker")} busy, ${count(slots - busy)} free` : "no node"}
      </a>
      <a href="/jobs?state=processing">{counted((by_state.processing ?? 0) - waiting - paused, "job")} at work</a>
      {waiting > 0 && <a href="/jobs?state=processing">{count(waiting)} waiting for workers</a>}
      {paused > 0 && <a href="/jobs?state=processing">{count(paused)} paused</a>}
      <a href="/jobs?state=queued">{count(total)} queued</a>
      {alive.length > 0 && <span>{bytes(least)} left on the fullest disk</span>}
      <span>ParallelRun {[...new Set(alive.map(({ version }) => version))].join(", ")}</span>
    </footer>
  );
}
