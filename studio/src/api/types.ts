// The answers of the REST API, as far as the page reads them: docs/openapi.json describes them in full.

export type JobState = "queued" | "processing" | "finalizing" | "completed" | "failed" | "canceled";
export type StepState = "waiting" | "running" | "completed" | "failed" | "canceled" | "skipped";
export type JobType = "parallel" | "command" | "pipeline";

/** How far a job is. Counts are mini-batches, unless the name says otherwise. */
export interface Progress {
  scheduled: number;
  listing_done: boolean;
  published: number;
  running: number;
  preparing: number;
  done: number;
  failed: number;
  empty: number;
  resumed: number;
  retried: number;
  lost: number;
  bytes_shuffled: number;
  bytes_to_shuffle: number;
  items_scheduled: number;
  items_ahead: number;
  all_found: boolean;
  chosen_size: number;
  chosen_why: string;
  items_done: number;
  items_failed: number;
  rows: number;
  bytes_concatenated: number;
  bytes_to_concatenate: number;
}

export interface ErrorCount {
  category: string;
  message: string;
  count: number;
  sample_mini_batches: number[];
  log: string;
}

export interface Failure {
  code: string;
  summary: string;
  error_category: string;
  first_cause: string;
  traceback: string;
  sample_mini_batches: number[];
  log: string;
  hint: string;
  errors: ErrorCount[];
}

export interface Step {
  name: string;
  type: JobType;
  state: StepState;
  reused: boolean;
  needs: string[];
  job: string | null;
  job_state: JobState | null;
  progress: Progress | null;
  started: string | null;
  ended: string | null;
  why: string;
}

export interface NamedOutput {
  name: string;
  type: string;
  step: string | null;
  path: string | null;
}

export interface OutputFile {
  path: string;
  bytes: number;
  sha256: string;
  order: string;
}

export interface Job {
  id: string;
  type: JobType;
  name: string;
  state: JobState;
  version: number;
  parent: { job: string; step: string } | null;
  submitted: string;
  started: string | null;
  ended: string | null;
  progress: Progress;
  failure: Failure | null;
  output: OutputFile | null;
  warnings: string[];
  metrics: Record<string, boolean | number | string | null>;
  spec: Record<string, unknown>;
  steps: Step[];
  outputs: NamedOutput[];
  notes: string[];
}

/** Some of a list; `next_page_token` is null on its last page. */
export interface Page<Item> {
  items: Item[];
  next_page_token: string | null;
}

export type MiniBatchStatus = "done" | "failed" | "running" | "ready";

export interface MiniBatch {
  id: number;
  status: MiniBatchStatus;
  tries: number | null;
  node: string | null;
  process: string | null;
  items: number | null;
  rows: number | null;
  failed_items: number | null;
  started: string | null;
  elapsed_s: number | null;
  run_s: number | null;
  process_s: number | null;
  peak_memory_bytes: number | null;
  read_bytes: number | null;
  failure: { category: string; message: string; traceback: string } | null;
}

export interface FileEntry {
  path: string;
  bytes: number;
  modified: string;
}

export interface FilePage extends Page<FileEntry> {
  elsewhere: { output: string; url: string }[];
}

export interface Node {
  node: string;
  host: string;
  slots: number;
  busy: number;
  state: "ready" | "disk_full" | "draining" | "lost";
  version: string;
  started: string;
  jobs: string[];
  workers_apart: boolean;
  memory_bytes: number;
  disk_free_bytes: number;
  clock_ahead_s: number;
  gpus?: {
    device: string;
    name: string;
    utilization: number | null;
    memory_used_bytes: number | null;
    memory_bytes: number | null;
  }[];
  pressure?: { cpu: number; io: number; memory: number } | null;
}
