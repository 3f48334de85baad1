// The words for states, and to which of a few kinds each belongs: a kind has one shape and one colour everywhere.

export type Kind = "waiting" | "running" | "done" | "failed" | "stopped";

const KINDS: Record<string, Kind> = {
  queued: "waiting",
  waiting: "waiting",
  ready: "waiting",
  waiting_for_workers: "waiting",
  starting: "waiting",
  paused: "stopped",
  processing: "running",
  finalizing: "running",
  running: "running",
  draining: "running",
  completed: "done",
  done: "done",
  failed: "failed",
  lost: "failed",
  disk_full: "failed",
  canceled: "stopped",
  skipped: "stopped",
};

export const kindOf = (state: string): Kind => KINDS[state] ?? "waiting";
export const worded = (state: string): string => state.replaceAll("_", " ");
