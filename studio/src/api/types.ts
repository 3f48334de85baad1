// Generated from docs/openapi.json by generate.mjs (npm run generate): not to be edited.
// The API leaves out no field of an answer, so each is required here.

/** Advice on how a job would be faster, cheaper or safer. */
export interface Advice {
  job_id: string;
  /** The advice in a sentence. */
  summary: string;
  /** None: no try has ended yet. */
  basis: AdviceBasis | null;
  /**
   * The findings: what endangers the job comes first, then what saves most. None: nothing that is known is worth a
   * change.
   */
  findings: AdviceFinding[];
  /** Findings that save less time than this, or a smaller share than the next, are left out. */
  min_saving_s: number;
  min_saving_share: number;
}

/** The tries and times that the advice rests on. */
export interface AdviceBasis {
  /** Seconds that the job took; of one that runs, up to the end of its last try. */
  seconds: number;
  mini_batches: number;
  tries: number;
  /** Number of tries that were looked at: of a huge job, a sample, so that the numbers above are about right. */
  looked_at: number;
  nodes: number;
  processes_per_node: number;
  is_running: boolean;
  /** The median of a mini-batch. */
  mini_batch_s: number;
  /** Seconds that a mini-batch costs beside its items. */
  fixed_s: number;
  /**
   * No order of these mini-batches on these workers is faster. 0: not known, as a worker runs several at once; so is
   * the next.
   */
  lower_bound_s: number;
  /** By how much the replay of what happened is too short. */
  unexplained_s: number;
}

/** Predicted times of a job for several values of one setting, computed from what was measured. */
export interface AdviceCurve {
  job_id: string;
  setting: "nodes" | "processes" | "mini_batch_size";
  /** The value that it had. */
  now: number;
  /** Seconds that the job took. */
  seconds: number;
  points: CurvePoint[];
  /** The assumptions of the prediction. */
  notes: string[];
}

/** A thing that costs a job time or money, or endangers it. */
export interface AdviceFinding {
  /** The kind of finding: stable. */
  id: string;
  severity: "low" | "moderate" | "severe" | "critical";
  /** `time`; `cost`: nodes that the job hardly needs; `risk`: the job, or some of its items, may fail. */
  saves: "time" | "cost" | "risk";
  /** The problem in a sentence. */
  title: string;
  /** The measurements that show it. */
  evidence: string[];
  change: Change;
  /** The section of the documents that says how to choose what it is about; empty: there is none. */
  guide: string;
  /** Seconds by which the job would have ended sooner with the change: predicted, as are the following two. */
  saving_s: number;
  /** The saving as a share of the job's time. */
  saving_share: number;
  /** Seconds that the job would have taken with the change; 0: unknown. */
  predicted_s: number;
  /** Seconds of nodes, summed over all of them, that the change would save. */
  saving_node_s: number;
  /** Some that show it. */
  mini_batches: number[];
  /** The nodes that show it, if not all do. */
  nodes: string[];
}

/** A version of an asset. Its content never changes. */
export interface Asset {
  type: "code" | "component" | "data" | "environment" | "model";
  name: string;
  version: string;
  /** The name by which a job's document refers to it. */
  id: string;
  created: string;
  /** The person who made the version. Empty: whoever runs the server. */
  owner: string;
  description: string;
  tags: Record<string, string>;
  properties: Record<string, string>;
  /** Hidden from lists and from `latest`; found by its name all the same. */
  archived: boolean;
  /** The content by type. `path`, if there is one, is where its files are. */
  content: Record<string, unknown>;
}

/** The labels of an asset. */
export interface AssetLabels {
  /** The labels, each with the version that has it; `latest` is always there. */
  labels: Record<string, string>;
}

/** Some assets, each by the version that was created last; or some versions of one, the newest first. */
export interface AssetPage {
  items: Asset[];
  /** Pass it as `page_token` for those that follow; null: there are none. */
  next_page_token: string | null;
}

/** A deployment of a batch endpoint. */
export interface BatchDeployment {
  name: string;
  endpoint: string;
  type: "model" | "pipeline";
  description: string;
  tags: Record<string, string>;
  /** The inputs of a pipeline. A model takes any data. */
  inputs: Record<string, DeploymentInput>;
  created: string;
  modified: string;
  /** Fields of its document that have no effect here, or work differently than in Azure ML. */
  notes: string[];
  /** Its job, with placeholders for what an invocation gives; the values of `environment_variables` are masked. */
  spec: Record<string, unknown>;
}

/** The deployments of an endpoint, by name. */
export interface BatchDeploymentList {
  items: BatchDeployment[];
}

/** A batch endpoint. */
export interface BatchEndpoint {
  name: string;
  /** The person whose endpoint it is; its jobs belong to those who invoke it. Empty: whoever runs the server. */
  owner: string;
  display_name: string;
  description: string;
  tags: Record<string, string>;
  /** The deployment that is invoked when a request names none; empty: it must name one. */
  default_deployment: string;
  deployments: string[];
  /** RFC 3339, UTC, milliseconds. */
  created: string;
  modified: string;
}

/** All batch endpoints, by name. */
export interface BatchEndpointList {
  items: BatchEndpoint[];
}

/** A change to make, in words and as settings. */
export interface Change {
  /** The change in a sentence. */
  text: string;
  /** Fields of the job file with their new values, as for `--set`; none, if the change is elsewhere. */
  set: Record<string, string>;
}

/** The room that the root folder takes. */
export interface ClusterUsage {
  free_bytes: number;
  total_bytes: number;
  /** Number of jobs, those of steps included. */
  jobs: number;
  /** By kind: jobs, of which parts and logs; snapshots, asset_files, assets, steps, uploads, blobs. */
  bytes: Record<string, number>;
  /** The largest jobs, the largest first. */
  largest: JobUsage[];
  /** The rules of retention that hold; 0 keeps everything. Empty: no master has started yet. */
  rules: Record<string, number>;
  last_sweep: Sweep | null;
}

/** A job of two that are compared. */
export interface Compared {
  id: string;
  name: string;
  state: string;
  figures: Figures;
}

/** Two jobs side by side. */
export interface Comparison {
  jobs: Compared[];
  /** The settings that differ. */
  settings: SettingOfTwo[];
}

/** A named pool of like nodes. */
export interface Compute {
  name: string;
  /** The kind: the engine that has its nodes. */
  type: string;
  min_instances: number;
  max_instances: number;
  /** True if it runs the jobs that name no compute. */
  is_default: boolean;
  /** The fields as they were defined, without those that are as by default. */
  definition: Record<string, unknown>;
  /** Null: no provisioner has said anything of it, as of one of kind `manual`. */
  status: ComputeStatus | null;
  /** The cost of an hour of the nodes that it has now, by `--cost-per-slot-hour` and `--cost-per-gpu-hour`. */
  cost_per_hour: number;
}

/** All computes. */
export interface ComputeList {
  items: Compute[];
}

/** A node of a compute, as its provisioner sees it. */
export interface ComputeNode {
  node: string;
  /** asked for; pending, with the engine; starting, its agent has not come; ready; leaving; left; lost. */
  stage: string;
  since: string;
  /** The engine's own, on why it waits or has ended. */
  words: string;
}

/** The status of a compute, by the provisioner that acts. */
export interface ComputeStatus {
  /** Time when it said so; the provisioner is away if that is more than a few seconds ago. */
  at: string;
  /** Nodes that its jobs can keep busy, within its limits. */
  wanted: number;
  ready: number;
  /** Asked for, and not there yet. */
  launching: number;
  leaving: number;
  /** Launches that have failed in a row. */
  failures: number;
  /** The engine's message about the last failure, or why it can't be asked; empty: nothing is wrong. */
  why: string;
  /** Time when it is asked again; null: as soon as nodes are needed. */
  next_attempt: string | null;
  /** The first hundred that there are, in any stage. */
  nodes: ComputeNode[];
  /** Exactly what is sent to the engine for a node. */
  plan: string;
  /** The plans by the image that a job has named: while such a job needs nodes, or such a node is there. */
  plans: Record<string, string>;
}

/** A value of a setting, and what it would give. */
export interface CurvePoint {
  value: number;
  seconds: number;
  node_hours: number;
  /** If a price was given. */
  cost: number | null;
}

/** The preview of each input that a job would cut into mini-batches. */
export interface DataPreview {
  items: InputPreview[];
}

/** A named place in an object store. */
export interface Datastore {
  name: string;
  type: string;
  /** The URL that paths in it begin from. */
  location: string;
  /** The source of credentials: what the nodes have by themselves, a file in their folders of secrets, nowhere. */
  access: "node" | "secret" | "anonymous";
  /** The fields as they were defined, without those that are as by default. */
  definition: Record<string, unknown>;
}

/** All datastores. */
export interface DatastoreList {
  items: Datastore[];
}

/** An input that an invocation of a pipeline gives. */
export interface DeploymentInput {
  type: string;
  /** The value when an invocation doesn't give it; none: it must. */
  default: string | null;
}

/** The work of a worker of a running job now, as its node has said within the last seconds. */
export interface DoingNow {
  doing: "init" | "loading" | "running" | "waiting_for_data" | "idle" | "ending";
  /** Time when that began, in seconds since the start of the timeline. */
  since_s: number;
  /** Several for a worker that runs several mini-batches at once: the oldest 64. */
  tries: RunningTry[];
  /** Number of mini-batches that it runs. */
  in_flight: number;
}

/** A setting of a job. */
export interface EffectiveSetting {
  name: string;
  /** The value in effect; values of environment variables are masked. */
  value: unknown;
  default: unknown;
  /** `unknown`: an earlier release has accepted the job, and the value is not the default. */
  origin: "given" | "default" | "unknown";
  /** The place of a setting that was given: a JSON pointer into the document that was submitted. */
  given_at: string;
  description: string;
  group: "job" | "run" | "parallel" | "inputs" | "outputs" | "limits" | "other";
}

/** The settings of a job, by groups. */
export interface EffectiveSettings {
  items: EffectiveSetting[];
}

/** Tries that failed in the same way: with the same type of exception, at the same line of the user's code. */
export interface ErrorCount {
  category: string;
  /** The message of the first error; if others have another one, with `…` for names, paths and numbers. */
  message: string;
  /** Number of tries. */
  count: number;
  sample_mini_batches: number[];
  /** The log that has the first of them in full: a path below `links.logs`. */
  log: string;
  /** The type of the exception; empty: the script has raised none. */
  exception: string;
  /** The innermost line of the user's code; empty: none of it is to blame. */
  place: string;
  /** Number of mini-batches that have failed with it for good. */
  mini_batches: number;
  /** Number of items that have failed with it for good, as far as they were counted. */
  items: number;
}

/** Why a job, or one of its mini-batches, runs or doesn't. */
export interface Explanation {
  job: string;
  /** Null: the answer is about the job as a whole. */
  mini_batch: number | null;
  /** True if it runs now. */
  runs: boolean;
  /** The answer in one sentence. */
  answer: string;
  /** Advice in words; empty: nothing has to be done. */
  advice: string;
  /**
   * All that have been checked, in the order in which they must be met. Those that depend on one which is not met may
   * be left out.
   */
  conditions: RunCondition[];
}

/** An item that has failed for good. */
export interface FailedItem {
  /** Its path; of a table, the number of the row in its mini-batch. */
  item: string;
  mini_batch: number;
  category: string;
  /** The first line of the error's message. */
  message: string;
  /** The innermost line of the user's code, as in `score.py:17`; empty: none of it is to blame. */
  place: string;
}

/** Some of the items of a job that have failed for good; none is listed before the job has ended. */
export interface FailedItemPage {
  items: FailedItem[];
  /** Number of items that have failed for good; the first 100,000 are listed. */
  total: number;
  next_page_token: string | null;
}

/** Key figures of a job. What isn't known (yet) is null. */
export interface Figures {
  /** Share of the existing records that is in the answer; 1: all. If less, ask again: each answer reads on. */
  read_share: number;
  /** Seconds from the submission to the start. */
  waited_s: number | null;
  /** Seconds from the start to the first try of a mini-batch. */
  first_try_s: number | null;
  /** Seconds from the start to the end, or until now. */
  took_s: number | null;
  nodes: number;
  workers: number;
  /** Decided. */
  mini_batches: number;
  failed_mini_batches: number;
  tries: number;
  failed_tries: number;
  items: number;
  rows: number;
  min_run_s: number | null;
  /** Median of the tries that succeeded, or of 100,000 of them, in seconds; so are the quantiles. */
  median_run_s: number | null;
  p95_run_s: number | null;
  p99_run_s: number | null;
  max_run_s: number | null;
  /** Seconds in `run()`, summed over all tries. */
  run_s: number;
  load_s: number;
  /** Seconds from the hand-over to a worker to its result, without loading, `run()` and waiting for limits. */
  overhead_s: number;
  /** Seconds in `init()`, summed over all workers. */
  init_s: number;
  /** Seconds of tries that failed. */
  wasted_s: number;
  /** Share of its workers' time that they were loading or running: since each began, until it ended. */
  busy_share: number | null;
  /** Items decided per second in all of its last run, as the `pace` of a job that has ended. */
  items_per_s: number | null;
  mini_batches_per_s: number | null;
}

/** A file. */
export interface FileEntry {
  path: string;
  bytes: number;
  modified: string;
}

/** The files below a folder, by path; so many that one answer can tell of. */
export interface FileList {
  items: FileEntry[];
  /** There are more, on the pages that follow. */
  truncated: boolean;
  next_page_token: string | null;
  /** Outputs in object stores, on each page. */
  elsewhere: OutputElsewhere[];
}

/** A finding of a machine about itself. */
export interface Finding {
  level: Level;
  what: string;
  /** The action to take; empty if nothing is to be done. */
  todo: string;
}

/** The outcome of a time at which a schedule was due. */
export interface Fire {
  /** RFC 3339, UTC. */
  due: string;
  /** `skipped`: an earlier job had not ended; `missed`: it was too late; `manual`: somebody asked for it. */
  outcome: "started" | "skipped" | "missed" | "manual";
  /** Time when that was decided. */
  at: string;
  /** The job that was made. */
  job_id: string | null;
  /** Times before it for which nothing was done, up to 1,000. */
  passed_over: number;
  /** Why no job was made. */
  why: string;
}

/** The outcomes of the times at which a schedule was due, the latest first. */
export interface FirePage {
  items: Fire[];
  next_page_token: string | null;
}

/** Answers that a job no longer has. */
export interface Forgotten {
  /** Number of answers that were deleted. */
  count: number;
  /** Bytes that its files are shorter by. */
  bytes: number;
}

/** The health of the server. */
export interface Health {
  status: "ok" | "unavailable";
  /** The checks that were made, and what is wrong with each. */
  checks: Record<string, string>;
}

/** The preview of one input: what `run()` would get of it. */
export interface InputPreview {
  name: string;
  path: string;
  /** `files`: run() gets paths; otherwise the kind of table of which it gets rows. */
  kind: string;
  /** The read step that was found out; null if the job has one, or the files look like no table. */
  read: Record<string, unknown> | null;
  /** Files that were listed. */
  files: number;
  /** Mini-batches that these are cut into: of the size that the job gives, or else of the usual one. */
  mini_batches: number;
  /** All files were listed; otherwise there are more. */
  is_complete: boolean;
  /** Paths of the first files. */
  first_files: string[];
  columns: PreviewColumn[];
  /** The first rows, by column; each value as Python writes it, so `'1'` is a text and `1` a number; null is null. */
  rows: (Record<string, string | null>)[];
  /** Files whose first rows have decided on the types of the columns. */
  sampled_from: string[];
  /** Number of the first files in each encoding. */
  encodings: Record<string, number>;
  /** Number of the first files with each compression. */
  compressions: Record<string, number>;
  warnings: string[];
  /** Why the input, or a part of it, can't be read. */
  errors: string[];
}

/** A range of one file of a table. */
export interface InputRange {
  path: string;
  /** The first byte; of Parquet, the first row of the file. */
  start: number;
  /** The first one after it; null: to the end of the file. */
  end: number | null;
  /** Index of its first row in the whole input; null: nobody has counted. */
  first_row: number | null;
  rows: number | null;
}

/** A job. */
export interface Job {
  id: string;
  type: "parallel" | "command" | "pipeline";
  name: string;
  /** The person whose job it is: the name of a token. Empty: whoever runs the server. */
  owner: string;
  state: JobState;
  /** Grows with every change that a watcher may want to see; that of a pipeline not with the progress of its steps. */
  version: number;
  /** The pipeline of which it is a step, if it is one. */
  parent: ParentStep | null;
  submitted: string;
  started: string | null;
  ended: string | null;
  progress: Progress;
  /** Outcome, as `completed, but 150 of 5,000 items failed (3 %): ValueError in score.py:17`; empty before. */
  summary: string;
  /** Null: of a pipeline, whose steps have a pace each. */
  pace: Pace | null;
  /** The first thing that it waits for; null: it runs, has ended, or just begins. Not in a list of jobs. */
  waiting: Waiting | null;
  failure: JobFailure | null;
  /** Once it has ended: the errors that have cost the most items, up to five. */
  errors: ErrorCount[];
  /** Once it has ended: files that were left out of the inputs, with a warning. */
  skipped: number;
  output: OutputFile | null;
  /** Warnings about the output of a completed job: rows with line breaks, columns that differ, … */
  warnings: string[];
  /** The last value of each metric that the script of a job that has ended has logged, of the first fifty. */
  metrics: Record<string, boolean | number | string | null>;
  /**
   * The submitted spec, also its tags of then; the values of `environment_variables` are masked. In a list of jobs,
   * without `steps`.
   */
  spec: Record<string, unknown>;
  /** The tags that it has now: the submitted ones, until somebody changes them. */
  tags: Record<string, string>;
  /** The steps of a pipeline, in an order in which they can run; not in a list of jobs. */
  steps: PipelineStep[];
  /** The outputs of a pipeline; not in a list of jobs. */
  outputs: NamedOutput[];
  /** True if somebody has paused it: nodes begin nothing more of it. */
  paused: boolean;
  /** The priority that counts now: the submitted one, or the one that it was given since. */
  priority: "low" | "normal" | "high" | "urgent";
  /** True if it is hidden from lists. */
  archived: boolean;
  /** Time when a rule of the operator will remove it; null: none will within the next week. Not in a list of jobs. */
  removed_at: string | null;
  /** Fields of the submitted document that have no effect here, or work differently than in Azure ML. */
  notes: string[];
  links: Links;
}

/** A document that would be accepted as a job. */
export interface JobCheck {
  type: "parallel" | "command" | "pipeline";
  name: string;
  /** Fields of the document that have no effect here, or work differently than in Azure ML. */
  notes: string[];
}

/** Counts of a job, or of the steps of a pipeline. */
export interface JobCounts {
  /** Mini-batches found so far, or steps. */
  total: number;
  /** True if no more will be found. */
  is_total_final: boolean;
  done: number;
  failed: number;
  running: number;
  /** Items that are decided. */
  items: number;
  /** Items for which something was raised, timed out or died. */
  items_failed: number;
  rows: number;
}

/** A document that makes a job like another one. */
export interface JobDocument {
  /** The settings that were given, as YAML; `code` names the code of that job, as it was kept. */
  text: string;
  /** Settings that are secret: they have to be given again. */
  left_out: string[];
}

/** The amount of a job before it runs, as its leader would cut its inputs. */
export interface JobExtent {
  mini_batches: number;
  files: number;
  /** Rows of tables in forms that know how many they have. */
  rows: number;
  /** Bytes of all files, estimated from a sample of them, and of tables. */
  bytes: number;
  /** All inputs were listed; otherwise there are more. */
  is_complete: boolean;
  /** Workers that nodes which are ready now may have for it. */
  workers: number;
  nodes: number;
}

/** Why a job failed. */
export interface JobFailure {
  code: string;
  summary: string;
  /** The category of the first cause. */
  error_category: string;
  first_cause: string;
  traceback: string;
  sample_mini_batches: number[];
  /** The log to open first: a path below `links.logs`. */
  log: string;
  hint: string;
  /** The five most frequent errors. */
  errors: ErrorCount[];
}

/** The schedule, endpoint or pipeline that made a job. */
export interface JobMaker {
  kind: "schedule" | "endpoint" | "pipeline";
  /** The name of the schedule or endpoint; the id of the pipeline. */
  name: string;
}

/** Use of a node when it was measured last while it worked for the job. */
export interface JobNodeUsage {
  /** CPUs that are there; of a node with a limit, the limit. */
  cpus: number | null;
  /** The share of all CPUs that was busy, 0 to 1. */
  cpu: number | null;
  memory_used_bytes: number | null;
  /** All memory of the machine. */
  memory_bytes: number | null;
  gpus: number;
  /** The mean share of the time, 0 to 1, in which something ran on the GPUs. */
  gpu: number | null;
  gpu_memory_used_bytes: number | null;
  gpu_memory_bytes: number | null;
  disk_read_bytes_per_s: number | null;
  disk_written_bytes_per_s: number | null;
  network_received_bytes_per_s: number | null;
  network_sent_bytes_per_s: number | null;
  at: string;
  history: UsageHistory;
  node: string;
  /** Name of its machine; empty: measured by an earlier release. */
  host: string;
}

/** Some of the jobs, newest first. */
export interface JobPage {
  items: Job[];
  /** Pass it as `page_token` for the jobs that follow; null: there are none. */
  next_page_token: string | null;
}

/** The state of a job. */
export type JobState = "queued" | "processing" | "finalizing" | "completed" | "failed" | "canceled";

/** A job in short; `GET /v1/jobs/{job_id}` has all of it. */
export interface JobSummary {
  id: string;
  type: "parallel" | "command" | "pipeline";
  name: string;
  /** The entry script, for jobs without a name. */
  script: string;
  state: JobState;
  tags: Record<string, string>;
  compute: string;
  owner: string;
  parent: ParentStep | null;
  /** Null: a person made it. */
  maker: JobMaker | null;
  submitted: string;
  started: string | null;
  ended: string | null;
  counts: JobCounts;
  pace: Pace | null;
  archived: boolean;
  /** The reason why it failed, in a sentence; empty: it has not. */
  why: string;
}

/** Some of the jobs that were searched for. */
export interface JobSummaryPage {
  items: JobSummary[];
  /** All that were found. */
  total: number;
  /** The number of jobs in each state that would be found if no state were asked for. */
  by_state: Record<string, number>;
  /** Jobs among those in `processing` that have no worker yet. */
  waiting: number;
  /** Jobs that somebody has paused. */
  paused: number;
  /** Pass it as `page_token` for the jobs that follow; null: there are none. */
  next_page_token: string | null;
}

/** The room that a job takes, or a pipeline with its steps. */
export interface JobUsage {
  job: string;
  bytes: number;
  /** Number of jobs: itself, and those of its steps. */
  jobs: number;
  /** Null: it has not ended. */
  ended: string | null;
}

/** Tries that failed in the same way: with the same type of exception, at the same line of the user's code. */
export interface KindOfError {
  category: string;
  /** The line; empty if there is none. */
  place: string;
  /** The message of the first failure; the traceback is that failure's, too. */
  message: string;
  traceback: string;
  has_several_messages: boolean;
  /** Tries. */
  count: number;
  /** The first ones, at most ten. */
  mini_batches: number[];
  node: string;
  process: string;
  /** The log that has the first of them in full: a path below `links.logs`. */
  log: string;
}

/** The failures of a job by kind, the most frequent first. */
export interface KindsOfErrors {
  /** Share of the existing records that is in the answer; 1: all. If less, ask again: each answer reads on. */
  read_share: number;
  items: KindOfError[];
  /** Tries that failed, of all kinds. */
  count: number;
  /** Failures whose kinds are not shown, as there are too many. */
  left_out: number;
}

/**
 * A worker in time. `init`, `load` and `run` have seconds for each bucket; the rest of it the worker was idle, or
 * not there: see `begin_s` and `end_s`.
 */
export interface Lane {
  node: string;
  process: string;
  /** Time when it began its first `init()` or try. */
  begin_s: number;
  /** Time when its last one ended. */
  end_s: number;
  /** Tries in the window. */
  tries: number;
  failed_tries: number;
  init: number[];
  load: number[];
  /**
   * Seconds of each bucket from the end of loading to the result, with what is around `run()`. Those of mini-batches
   * in flight at the same time are added up: more than the bucket has.
   */
  run: number[];
  /** If the window has few enough. */
  spans: TrySpans | null;
  /** null: the job has ended, or the worker has. */
  now: DoingNow | null;
}

/** The level of a finding. */
export type Level = "ok" | "warn" | "bad";

/** Paths with more about a job. */
export interface Links {
  self: string;
  events: string;
  mini_batches: string;
  logs: string;
  outputs: string;
  metrics: string;
  cancel: string;
}

/** A line of a log. */
export interface LogLine {
  path: string;
  /** Its number, from 1. */
  line: number;
  /** The position where the line begins: ask for the log with `Range: bytes=OFFSET-` to read on from there. */
  offset: number;
  /** The text, at most 1,000 characters of it, with what controls terminals escaped. */
  text: string;
  is_cut: boolean;
}

/** Some lines, by the paths of their logs. A page may have no line, and still not be the last. */
export interface LogLines {
  items: LogLine[];
  /** By this page. */
  searched_bytes: number;
  next_page_token: string | null;
}

/** A line of the log of one worker, or of the leader. */
export interface MergedLine {
  /** The time of the line; of what was printed, to a tenth of a second. */
  at: string;
  /** False: nothing says when it was printed, and `at` is the time when its worker began. */
  has_time: boolean;
  /** The level that the line says; null: it says none. */
  level: string | null;
  /** Empty: the leader. */
  node: string;
  process: string;
  /** The mini-batch that ran then; null: none, several at once, or unknown. */
  mini_batch: number | null;
  /** `logger`: that of `EntryScript`; `worker` and `leader` are the engine's own logs. */
  source: "stdout" | "stderr" | "logger" | "worker" | "leader";
  path: string;
  /** The position in its log where the line begins. */
  offset: number;
  /** The text, at most 1,000 characters of it, with what controls terminals escaped. */
  text: string;
  is_cut: boolean;
}

/** Some lines of all logs, by time. A page may have no line, and still not be the last. */
export interface MergedLines {
  items: MergedLine[];
  /** Logs that are merged, without empty ones. */
  files: number;
  /** Logs beyond the most that are merged: name a `worker`. */
  files_left_out: number;
  next_page_token: string | null;
}

/** The values that the entry script has logged under one name. */
export interface Metric {
  name: string;
  /** Params and tags are texts that the script has logged with MLflow. */
  kind: "metric" | "param" | "tag";
  /** Number of values. */
  count: number;
  /** The last 500 of them, in the order of their times. */
  points: MetricPoint[];
}

/** A value of a metric. */
export interface MetricPoint {
  /** By the clock of the node. */
  time: string;
  value: unknown;
  step: number | null;
  /** The node; of a pipeline, the step. */
  source: string;
  process: string;
}

/** The metrics of a job by name, then its params and tags. None were logged, if there are no items. */
export interface MetricReport {
  items: Metric[];
  /** Values that were too many, too long, or came too fast. */
  left_out: number;
}

/** A mini-batch. One that is `ready` or `running` has few fields yet. */
export interface MiniBatch {
  id: number;
  status: "done" | "failed" | "running" | "ready";
  /** Since the job began, or was last reopened. */
  tries: number | null;
  node: string | null;
  process: string | null;
  /** The first of its files; empty: nobody has asked for it. */
  first_input: string;
  items: number | null;
  rows: number | null;
  failed_items: number | null;
  started: string | null;
  /** Seconds from the hand-over by the agent to the result. */
  elapsed_s: number | null;
  /** Seconds in `run()` itself. */
  run_s: number | null;
  /** CPU seconds of the worker in `run()` and around it; null: others ran in it at the same time. */
  process_s: number | null;
  /** The most memory that the worker process had meanwhile. */
  peak_memory_bytes: number | null;
  /**
   * Bytes that the worker process read by system calls meanwhile. Mini-batches that follow each other within
   * milliseconds are measured together: see `Peak Memory (MB)` and `Read (MB)` in docs/logs.md.
   */
  read_bytes: number | null;
  /** Pages of memory that the worker process was given meanwhile without reading a disk. */
  minor_page_faults: number | null;
  /** Pages that had to be read from a disk first. */
  major_page_faults: number | null;
  /** Times that a thread of it waited meanwhile: for a disk, a lock, another process. */
  voluntary_context_switches: number | null;
  /** Times that a thread of it had to leave its CPU to others. */
  involuntary_context_switches: number | null;
  failure: MiniBatchFailure | null;
}

/** Why a mini-batch failed. */
export interface MiniBatchFailure {
  category: string;
  message: string;
  traceback: string;
}

/** The inputs of a mini-batch, in the order in which `run()` gets them. */
export interface MiniBatchInputs {
  /** Number of items; of a table, 0 until its rows were counted. */
  items: number;
  /** Number of files and ranges; the first 1,000 are listed. */
  total: number;
  files: string[];
  ranges: InputRange[];
  /** Values of the job's `partition_keys`, in their order. */
  keys: (string | null)[];
}

/** A try that a worker has begun and not ended, as its node has said within the last seconds. */
export interface MiniBatchNow {
  node: string;
  process: string;
  /** Number of the try: 1 is the first one. */
  number: number;
  doing: "loading" | "running";
  /** Time when the worker got it. */
  started: string;
  /** Time when `run()` was called; null: its data are being read. */
  run_started: string | null;
  /** The logs of its worker that exist: paths below `links.logs`. */
  logs: string[];
}

/** Some of a job's mini-batches. A page may hold fewer than asked for, and still not be the last. */
export interface MiniBatchPage {
  items: MiniBatch[];
  next_page_token: string | null;
  /** The nodes that have tried one, with another order than that of decisions. */
  nodes: string[];
  /** The workers that have tried one, by their names on their nodes, with another order than that of decisions. */
  processes: string[];
  /** The categories of errors with which mini-batches have failed, with another order than that of decisions. */
  categories: string[];
}

/** A mini-batch with all of its tries, in the order in which they were recorded. */
export interface MiniBatchTries {
  id: number;
  status: "done" | "failed" | "running" | "ready";
  /** The node of a mini-batch that is `running`. */
  node: string | null;
  /** The try that runs now; null: none does, or no worker of that node has begun it. */
  now: MiniBatchNow | null;
  /** Median of all tries of the job, to compare with. */
  median_run_s: number | null;
  tries: MiniBatchTry[];
  /** Share of the existing records that was looked at; 1: all. If less, ask again. */
  read_share: number;
}

/** A try of a mini-batch. */
export interface MiniBatchTry {
  id: number;
  status: "done" | "failed" | "running" | "ready";
  /** Since the job began, or was last reopened. */
  tries: number | null;
  node: string | null;
  process: string | null;
  /** The first of its files; empty: nobody has asked for it. */
  first_input: string;
  items: number | null;
  rows: number | null;
  failed_items: number | null;
  started: string | null;
  /** Seconds from the hand-over by the agent to the result. */
  elapsed_s: number | null;
  /** Seconds in `run()` itself. */
  run_s: number | null;
  /** CPU seconds of the worker in `run()` and around it; null: others ran in it at the same time. */
  process_s: number | null;
  /** The most memory that the worker process had meanwhile. */
  peak_memory_bytes: number | null;
  /**
   * Bytes that the worker process read by system calls meanwhile. Mini-batches that follow each other within
   * milliseconds are measured together: see `Peak Memory (MB)` and `Read (MB)` in docs/logs.md.
   */
  read_bytes: number | null;
  /** Pages of memory that the worker process was given meanwhile without reading a disk. */
  minor_page_faults: number | null;
  /** Pages that had to be read from a disk first. */
  major_page_faults: number | null;
  /** Times that a thread of it waited meanwhile: for a disk, a lock, another process. */
  voluntary_context_switches: number | null;
  /** Times that a thread of it had to leave its CPU to others. */
  involuntary_context_switches: number | null;
  failure: MiniBatchFailure | null;
  /** `failed`: for good; `retried`: another try followed; `lost`: it has completed, and the disk has lost its rows. */
  outcome: "completed" | "failed" | "retried" | "lost";
  /** Number of times that the job had been reopened before it. */
  generation: number;
  /** Seconds since the start of the job's timeline. */
  begin_s: number | null;
  /** The logs of its worker that exist: paths below `links.logs`. */
  logs: string[];
}

/** An output of a pipeline. */
export interface NamedOutput {
  name: string;
  type: "uri_folder" | "uri_file";
  /** The step that makes it; null: none does. */
  step: string | null;
  /** The folder, file or URL, once the job that makes it has begun. */
  path: string | null;
}

/** A token that was just made. */
export interface NewToken {
  /** The owner of what is made with it. */
  name: string;
  scopes: ("read" | "submit" | "admin")[];
  created: string;
  /** The name of the token with which it was made. */
  created_by: string;
  /** Time from which it is not valid any more; null: never. */
  expires: string | null;
  /** False if it has expired. */
  is_valid: boolean;
  /** Its text, which nobody can show again: the server stores a hash of it. */
  token: string;
}

/** A node. */
export interface Node {
  node: string;
  host: string;
  /** Workers that it runs at the same time. */
  slots: number;
  busy: number;
  state: NodeState;
  version: string;
  started: string;
  /** The jobs that it is ready to work for, with a worker or without. */
  jobs: string[];
  /** The jobs for which it has busy workers. */
  work: WorkForJob[];
  /** True if user code runs as another user than the agent. */
  workers_apart: boolean;
  /** All that the node has; 0: an agent of an earlier release doesn't say. */
  memory_bytes: number;
  /** Free where its workers have their working folders. */
  disk_free_bytes: number;
  /** Seconds that its clock is ahead of Redis'; negative: behind. */
  clock_ahead_s: number;
  /** The compute that it belongs to; empty: none. */
  compute: string;
  /** Time when its engine is going to end it; null: not by itself. */
  ends_at: string | null;
  /** The pressure on its resources, for which its processes wait; null if its kernel doesn't measure that. */
  pressure: NodePressure | null;
  /** The GPUs that workers get, with `nvidia-ml-py` installed there. */
  gpus: NodeGpu[];
  /** The use of its resources, with the last half hour; null: an agent of an earlier release doesn't measure it. */
  usage: NodeUsage | null;
  /** Its answer to the last `:check`, for a minute. */
  check: NodeCheck | null;
}

/** A node's answer to a request to check itself. */
export interface NodeCheck {
  /** Id of the request. */
  id: string;
  /** Findings about what is not as it should be, and what of the paths of the request can be read there. */
  findings: Finding[];
}

/** All nodes were asked. */
export interface NodeCheckAsked {
  /** Nodes that have answered show a `check` with this id, after some seconds. */
  id: string;
}

/** A GPU of a node, or a part of one (MIG). */
export interface NodeGpu {
  /** The GPU's name as CUDA_VISIBLE_DEVICES has it. */
  device: string;
  /** The model. */
  name: string;
  /** The part of the time, 0 to 1, in which something ran on it lately; null: unknown, as of parts. */
  utilization: number | null;
  memory_used_bytes: number | null;
  memory_bytes: number | null;
}

/** All nodes, by name. */
export interface NodeList {
  items: Node[];
  /** The use of all hosts that were measured, each counted once; null: none was. */
  total: ResourceUsage | null;
}

/** The part of the last minute, 0 to 1, in which something waited for a resource, as the kernel tells it (PSI). */
export interface NodePressure {
  /** `cgroup`: of all in the agent's cgroup, such as its container; `machine`: of the whole machine. */
  of: string;
  cpu: number;
  io: number;
  memory: number;
}

/** The last answer of one node. */
export interface NodeStacks {
  /** Id of the request. */
  id: string;
  node: string;
  at: string;
  workers: WorkerStacks[];
  /** Workers beyond 64: ask for them by name. */
  left_out: number;
}

/** The state of a node. */
export type NodeState = "ready" | "disk_full" | "draining" | "lost";

/** Use of a node when it was measured last. */
export interface NodeUsage {
  /** CPUs that are there; of a node with a limit, the limit. */
  cpus: number | null;
  /** The share of all CPUs that was busy, 0 to 1. */
  cpu: number | null;
  memory_used_bytes: number | null;
  /** All memory of the machine. */
  memory_bytes: number | null;
  gpus: number;
  /** The mean share of the time, 0 to 1, in which something ran on the GPUs. */
  gpu: number | null;
  gpu_memory_used_bytes: number | null;
  gpu_memory_bytes: number | null;
  disk_read_bytes_per_s: number | null;
  disk_written_bytes_per_s: number | null;
  network_received_bytes_per_s: number | null;
  network_sent_bytes_per_s: number | null;
  at: string;
  history: UsageHistory;
}

/** Use of all nodes of a job, side by side and together. */
export interface NodeUsageReport {
  /** Nodes by name; at most as many as `limit` says. */
  items: JobNodeUsage[];
  /** Nodes that have measured something. */
  nodes_total: number;
  /** Sums over the machines of the nodes that were measured in the last minute of all measurements. */
  total: ResourceUsage;
  nodes_in_total: number;
  /** Machines of those nodes: each counts once, however many nodes run on it. */
  machines_in_total: number;
}

/** An output in an object store, which the server doesn't read: fetch it from there. */
export interface OutputElsewhere {
  /** The name of the output; empty for that of the job, which has the rows. */
  output: string;
  url: string;
}

/** The file with all rows. */
export interface OutputFile {
  path: string;
  bytes: number;
  sha256: string;
  /** `sorted`, or `listing` when an input folder was too large to be sorted. */
  order: string;
}

/** The first rows of an output, as a job that reads it would get them. */
export interface OutputTable {
  name: string;
  path: string;
  /** `files`: run() gets paths; otherwise the kind of table of which it gets rows. */
  kind: string;
  /** The read step that was found out; null if the job has one, or the files look like no table. */
  read: Record<string, unknown> | null;
  /** Files that were listed. */
  files: number;
  /** Mini-batches that these are cut into: of the size that the job gives, or else of the usual one. */
  mini_batches: number;
  /** All files were listed; otherwise there are more. */
  is_complete: boolean;
  /** Paths of the first files. */
  first_files: string[];
  columns: PreviewColumn[];
  /** The first rows, by column; each value as Python writes it, so `'1'` is a text and `1` a number; null is null. */
  rows: (Record<string, string | null>)[];
  /** Files whose first rows have decided on the types of the columns. */
  sampled_from: string[];
  /** Number of the first files in each encoding. */
  encodings: Record<string, number>;
  /** Number of the first files with each compression. */
  compressions: Record<string, number>;
  warnings: string[];
  /** Why the input, or a part of it, can't be read. */
  errors: string[];
  /** Rows of the whole output; null: its form, such as CSV, doesn't know how many it has. */
  total_rows: number | null;
}

/** Pace of a job, and what is left of it, at the time of the answer. */
export interface Pace {
  /**
   * `waiting_for_workers`: no node has a worker for it; `starting`: its workers begin, with their environment and
   * `init()`.
   */
  standing: "queued" | "waiting_for_workers" | "starting" | "running" | "paused" | "finalizing" | "ended";
  /** Time of the answer. */
  as_of: string;
  /**
   * Seconds from the submission, or the last resume or retry, until a mini-batch first had a worker; they grow while
   * it waits.
   */
  waited_s: number;
  /** Seconds since then, until the end. */
  ran_s: number;
  /** Items decided per second in the last minutes; of a job that has ended, in all of its last run. */
  items_per_s: number | null;
  mini_batches_per_s: number | null;
  /** Seconds until all is decided at this pace; null: not known yet. */
  left_s: number | null;
  /** Time at which it then ends. */
  ends: string | null;
}

/** The pipeline and the step that a job is of. */
export interface ParentStep {
  job: string;
  step: string;
}

/** A step of a pipeline. */
export interface PipelineStep {
  name: string;
  type: "parallel" | "command" | "pipeline";
  /** The kind of loop that it is, whose turns are the steps of its job; null: it runs once. */
  loop: "parallel_for" | "do_while" | null;
  /** Number of turns of a loop that have begun; null: it is none, or has not begun. */
  turns: number | null;
  /** Number of turns that there are, of a `parallel_for`, or that there may be, of a `do_while`. */
  most_turns: number | null;
  state: StepState;
  /** True if it has not run: `job` is an earlier one, which did the same, and whose outputs are taken. */
  reused: boolean;
  /** The steps that must have ended before it can begin. */
  needs: string[];
  /** The job that runs it, once there is one. */
  job: string | null;
  /** The path of that job. */
  link: string | null;
  job_state: JobState | null;
  progress: Progress | null;
  started: string | null;
  ended: string | null;
  /** Why it has failed, is skipped, or was run again. */
  why: string;
}

/** A column of a table. */
export interface PreviewColumn {
  name: string;
  /** The type in the DataFrame that `run()` gets, as pandas names it. */
  type: string;
}

/** An error (RFC 9457). */
export interface Problem {
  type: string;
  title: string;
  status: number;
  detail: string;
  /** The path of the request. */
  instance: string;
  /** Stable; for programs. */
  code: string;
  /** All wrong fields at once. */
  errors: ProblemEntry[];
  /** Only with status 500: finds the error in the server's log. */
  trace_id: string | null;
}

/** A wrong field. */
export interface ProblemEntry {
  /** The place of the field: a JSON pointer into the job spec, or `/query/…`, `/header/…`. */
  pointer: string;
  message: string;
  hint: string | null;
}

/** The profiles of a job's workers, summed up. */
export interface Profile {
  /** `cProfile` or `profile`, as the job asks for; empty: for none. */
  profiling_module: string;
  workers: ProfiledWorker[];
  /** Workers whose profiles are not in it: too many, or not to be read as data, as those of earlier releases. */
  left_out: number;
  total_s: number;
  /** Number of functions there are in all. */
  count: number;
  /** The functions that come first in the order asked for. */
  items: ProfiledFunction[];
}

/** A call, by the way that leads to it. */
export interface ProfileCall {
  /** The place of its caller in the list; -1: it was called by the engine. */
  parent: number;
  depth: number;
  function: string;
  file: string;
  line: number;
  seconds: number;
  own_s: number;
}

/**
 * The calls that take most time, each after its caller. Python's profilers know who calls whom, not the way to each
 * call: what a function takes is divided among the ways to its callers.
 */
export interface ProfileTree {
  total_s: number;
  items: ProfileCall[];
}

/** A function, in all workers that were asked for. */
export interface ProfiledFunction {
  function: string;
  /** Relative to the job's code, if it is in there; empty: it isn't written in Python. */
  file: string;
  line: number;
  calls: number;
  /** Without calls from within itself. */
  plain_calls: number;
  /** Without functions that it has called. */
  own_s: number;
  /** Seconds in the function and in those that it calls. */
  cumulative_s: number;
}

/** A worker with a profile. */
export interface ProfiledWorker {
  node: string;
  process: string;
  /** Seconds in which it was measured. */
  total_s: number;
}

/** Progress of a job. Counts are mini-batches, unless the name says otherwise. */
export interface Progress {
  /** Found so far; the total once `listing_done`. */
  scheduled: number;
  /** True when `scheduled` is the job's total. */
  listing_done: boolean;
  published: number;
  /** Mini-batches with a worker: one each, or as many as it runs at once; agents hold more. */
  running: number;
  /** Nodes that are building the Python environment of the workers. */
  preparing: number;
  /** Nodes of the job's compute that are there for it. */
  nodes: number;
  /** Nodes that it has or waits for; 0: it runs on no compute. */
  nodes_wanted: number;
  /** Why there are fewer: what the compute's engine says. */
  nodes_why: string;
  done: number;
  failed: number;
  /** Mini-batches of `done` without any item: ranges of a table in which no record begins. */
  empty: number;
  /** Mini-batches of `done` whose rows were taken over from an earlier job (`resume_from`). */
  resumed: number;
  /** Tries that failed and were followed by another. */
  retried: number;
  /** Deliveries that ended because their node was lost. */
  lost: number;
  /** Progress of grouping a table's rows by keys before it is cut; of `bytes_to_shuffle`. */
  bytes_shuffled: number;
  bytes_to_shuffle: number;
  /** Found so far; for a table, the rows that were read. */
  items_scheduled: number;
  /** Found as well, and in no mini-batch yet: of a job that chooses the size of these (`mini_batch_size: auto`). */
  items_ahead: number;
  /** True if such a job has found all items, though not all of them are in mini-batches. */
  all_found: boolean;
  /** Number of items a mini-batch of such a job has now; 0: it doesn't choose. */
  chosen_size: number;
  chosen_why: string;
  items_done: number;
  /** Failed items, as Azure ML counts: all of mini-batches that failed, and those without a row of `run()`. */
  items_failed: number;
  /** Part of `items_failed`: `run()` returned no row for them, and nothing was raised. */
  items_short: number;
  /** Part of `items_failed`: an estimate, for mini-batches that failed before anybody had counted their items. */
  items_estimated: number;
  /** Seconds for which mini-batches that are done have waited for permits, by limit, all added up. */
  waits_s: Record<string, number>;
  /** Seconds that those of them took which have asked for permits, waits included, all added up. */
  waits_of_s: number;
  /** US dollars that scripts have reported as the cost of their calls, all tries included. */
  spent_usd: number;
  /** US dollars that the job may spend; 0: it has no budget. */
  budget_usd: number;
  rows: number;
  bytes_concatenated: number;
  bytes_to_concatenate: number;
  /** Worker processes that nodes have for the job, those still in `init()` included. */
  workers: number;
  /** Start of the worker that is in `init()` for longest, in seconds since the epoch; 0: none is. */
  init_since: number;
  /** Seconds that `init()` may take; 0: not known yet. */
  init_limit_s: number;
  /** Id of the mini-batch that runs for longest; -1: not known. */
  longest: number;
  /** Time when that one began, in seconds since the epoch. */
  longest_since: number;
  /**
   * Time of the submission, or of the last resume or retry, in seconds since the epoch; 0: a leader of an earlier
   * release.
   */
  queued_at: number;
  /** Time at which a mini-batch first had a worker since `queued_at`, in seconds since the epoch; 0: none has had. */
  worked_from: number;
  /** Mini-batches that were decided before `queued_at`: they say nothing about the pace. */
  decided_before: number;
  items_before: number;
  /** Begin of the last minutes in which mini-batches were decided, in seconds since the epoch. */
  recent_from: number;
  /** Time of the last change of the two counts that follow. */
  recent_to: number;
  /** Mini-batches decided from `recent_from` on. */
  recent_mini_batches: number;
  recent_items: number;
}

/** The limits of a person; null: there is none. */
export interface Quota {
  /** The owner, or `everybody`: those who have no quota of their own. */
  name: string;
  /** Jobs that have not ended; a pipeline counts once. */
  jobs: number | null;
  /** Jobs that are accepted in a minute. */
  submissions_per_minute: number | null;
  /** Workers that their jobs have at the same time. */
  slots: number | null;
  /** Nodes on which their jobs have workers at the same time. */
  nodes: number | null;
  /** Bytes of the folders of their jobs that have ended. */
  job_bytes: number | null;
}

/** All quotas, by name. */
export interface QuotaList {
  items: Quota[];
}

/** A limit on calls of a service that somebody else runs, for all jobs together; null: no such limit. */
export interface RateLimit {
  name: string;
  /** Calls that begin in any minute. */
  requests_per_minute: number | null;
  /** Tokens that the calls which begin in any minute have together. */
  tokens_per_minute: number | null;
  /** Calls that are made at the same time. */
  in_flight: number | null;
}

/** All limits. */
export interface RateLimitList {
  items: RateLimit[];
}

/** An answer under its key, as a worker of the job, or of one that it resumes from, has remembered it. */
export interface RememberedAnswer {
  key: string;
  /** Bytes of the line with key and value, as JSON. */
  bytes: number;
  /** The first 200 characters of the value, as JSON. */
  value_begin: string;
  /** The file that has it, below `links.logs`; in a folder `.earlier` when it was taken over from another job. */
  log: string;
}

/** Part of what a job remembers. */
export interface RememberedPage {
  items: RememberedAnswer[];
  /** Bytes of all files in which the job remembers. */
  bytes: number;
  next_page_token: string | null;
}

/** Things of one kind that a sweep removes. */
export interface RemovedKind {
  count: number;
  bytes: number;
}

/** Resources in use, and how much there is of them; null: it wasn't measured. */
export interface ResourceUsage {
  /** CPUs that are there; of a node with a limit, the limit. */
  cpus: number | null;
  /** The share of all CPUs that was busy, 0 to 1. */
  cpu: number | null;
  memory_used_bytes: number | null;
  /** All memory of the machine. */
  memory_bytes: number | null;
  gpus: number;
  /** The mean share of the time, 0 to 1, in which something ran on the GPUs. */
  gpu: number | null;
  gpu_memory_used_bytes: number | null;
  gpu_memory_bytes: number | null;
  disk_read_bytes_per_s: number | null;
  disk_written_bytes_per_s: number | null;
  network_received_bytes_per_s: number | null;
  network_sent_bytes_per_s: number | null;
}

/** A condition for running, and its state. */
export interface RunCondition {
  name: string;
  /** `met`; `waits`: it passes by itself; `blocks`: somebody has to do something. */
  state: "met" | "waits" | "blocks";
  text: string;
  /** Advice in words; empty: nothing has to be done. */
  advice: string;
  /** Seconds until it is expected to be met; null: nobody knows, or it is. */
  left_s: number | null;
  /** True if only an admin of the cluster can change it, and the one who asks is none. */
  needs_admin: boolean;
}

/** A try that a worker has begun and not ended. */
export interface RunningTry {
  mini_batch: number;
  /** Number of the try: 1 is the first one. */
  number: number;
  /** null: not known yet. */
  items: number | null;
  /** Time when the worker got it, in seconds since the start of the timeline. */
  begin_s: number;
  /** Seconds until `run()` was called; null: its data are being read. */
  load_s: number | null;
  /** Its time in `run()` as a multiple of the median of all tries; null: nothing can be said. */
  times_median: number | null;
}

/** A schedule, as it is now. */
export interface Schedule {
  name: string;
  /** The person whose schedule it is, and whose its jobs are. Empty: whoever runs the server. */
  owner: string;
  display_name: string;
  description: string;
  tags: Record<string, string>;
  enabled: boolean;
  trigger: Record<string, unknown>;
  /** A line for people about when it is due. */
  due: string;
  missed_runs: "once" | "skip";
  allow_overlap: boolean;
  created: string;
  /** Time when it was last defined, enabled or disabled. */
  modified: string;
  /** Grows whenever it is. */
  revision: number;
  /** The times at which it is due next, up to five; none while it is disabled, or when it has ended. */
  next: string[];
  /** The outcome of the last time. */
  last: Fire | null;
  job: ScheduledJob;
}

/** Schedules, by name. */
export interface SchedulePage {
  items: Schedule[];
  next_page_token: string | null;
}

/** The job that a schedule makes. */
export interface ScheduledJob {
  name: string;
  type: "parallel" | "command" | "pipeline";
  /** Fields of its document that have no effect here, or work differently than in Azure ML. */
  notes: string[];
  /**
   * The spec of a job; the values of `environment_variables` are masked. What each job has for itself is a
   * placeholder.
   */
  spec: Record<string, unknown>;
}

/** The session of this browser, if it has one. */
export interface Session {
  is_signed_in: boolean;
  /** The name of the token that it has signed in with; empty if none is needed. */
  token_name: string;
  is_token_needed: boolean;
  /** The scopes of that token: what this browser may do. */
  scopes: ("read" | "submit" | "admin")[];
  /** True if several people have tokens of their own: then it matters whose a job is. */
  has_people: boolean;
  /** Time when it has to sign in again; null: never. */
  ends: string | null;
}

/** A setting in which two jobs differ. */
export interface SettingOfTwo {
  name: string;
  /** The values of the one job and of the other. */
  values: unknown[];
}

/** The code that signs in a browser in place of the token, once. */
export interface SignInCode {
  code: string;
  ends: string;
  /** A path of this server: open it in a browser. */
  link: string;
}

/** The locations in the server's site file; the assets in it are found by the server itself. */
export interface SitePlaces {
  /** The names of datastores, each with the place where its paths begin here. */
  datastores: Record<string, string>;
  /** The beginnings of URLs, each with the place that stands for it here. */
  locations: Record<string, string>;
}

/** A try that took long. */
export interface SlowTry {
  mini_batch: number;
  node: string;
  process: string;
  begin_s: number;
  run_s: number;
  /** Number of times as long as the median of all tries of the job; null: that is 0. */
  times_median: number | null;
}

/** A call. */
export interface StackFrame {
  /** Relative to the job's code, if it is in there. */
  file: string;
  /** 0: unknown. */
  line: number;
  function: string;
}

/** The nodes that work for a job were asked. */
export interface StacksAsked {
  /** Nodes that have answered are in `GET /v1/jobs/{id}/stacks` with this id, after some seconds. */
  id: string;
  /** The nodes that are expected to answer. */
  nodes: string[];
}

/** The last answer of each node. None has answered anything yet, if there are no items. */
export interface StacksReport {
  items: NodeStacks[];
}

/** The state of a step of a pipeline. */
export type StepState = "waiting" | "running" | "completed" | "failed" | "canceled" | "skipped";

/** The requests of a job to object stores, and of its nodes to the file systems of its folders, by process. */
export interface StorageReport {
  items: StorageRequests[];
}

/**
 * The requests of one process to one object store by one operation, while it worked for a job; or those of its node
 * to the file system of a folder that the job reads.
 */
export interface StorageRequests {
  /** A node; `master` lists, `concatenator` writes the output of rows. */
  node: string;
  store: string;
  /** `upload`: to begin, complete or abort one in parts; each part is a `put`. The last four are of file systems. */
  operation: "list" | "head" | "get" | "put" | "upload" | "copy" | "delete" | "read" | "open" | "lookup" | "stat";
  since: string;
  until: string;
  requests: number;
  bytes: number;
  /** Calls that failed in the end. */
  failures: number;
  /** Requests among them to which the store said that it has too much to do. */
  throttled: number;
  /** Retries as far as they are known: see docs/logs.md. */
  retries: number;
  /** Null for a file system, as in the next two. */
  p50_ms: number | null;
  p95_ms: number | null;
  p99_ms: number | null;
  mean_ms: number;
}

/** The outcome of a sweep, or of a plan for one. */
export interface Sweep {
  at: string;
  /** By kind: jobs, parts, logs, snapshots, asset_files, asset_versions, steps, uploads, blobs. */
  removed: Record<string, RemovedKind>;
  /** The jobs among them. */
  jobs: string[];
  /** Jobs that a rule will remove, each with the time of that. */
  notices: Record<string, string>;
  /** Jobs that would go, each with what refers to it. */
  references: Record<string, string>;
  /** Why a limit can't be kept; empty: it can. */
  problem: string;
  /** Folders that are out of the way, and that the master can't remove: they have files of another user. */
  not_removed: number;
  took_s: number;
  /** False for a plan, which has changed nothing. */
  is_applied: boolean;
}

/** A thread of a worker. */
export interface ThreadStack {
  is_main: boolean;
  /** Empty: not known. */
  name: string;
  /**
   * The innermost call first. Those of the engine that lead to the script are left out, so a worker without work has
   * none.
   */
  frames: StackFrame[];
}

/** Throughput in time: each list has a value for each bucket, from `begin_s` on. */
export interface Throughput {
  /** Share of the existing records that is in the answer; 1: all. If less, ask again: each answer reads on. */
  read_share: number;
  /** The start of the timeline. */
  start: string | null;
  /** Seconds from there to the first bucket: negative, as buckets begin at multiples of their length. */
  begin_s: number;
  bucket_s: number;
  /** Decided. */
  mini_batches: number[];
  /** Items of those mini-batches, also those that failed or have no row: their sum is the decided items of the job. */
  items: number[];
  /** Mini-batches that failed. */
  failed: number[];
  /** Tries that failed, and were followed by another. */
  retried: number[];
  /** Number of workers that were loading or running, on the average; each counts once, whatever it has in flight. */
  busy_workers: number[];
  /** Time when the first try of all began, in seconds since `start`; null: none has. */
  first_try_s: number | null;
  /** Time when the last one so far ended. */
  last_try_s: number | null;
}

/**
 * Mini-batches in buckets of neighbors: bucket `i` has those from `first + i * bucket_size` on, the last one up to
 * `end`. Each list has a value for each bucket. `waiting`, `running`, `completed` and `failed` add up to all of it.
 */
export interface Tiles {
  /** Share of the existing records that is in the answer; 1: all. If less, ask again: each answer reads on. */
  read_share: number;
  /**
   * The first mini-batch: the one asked for, or an earlier one, as buckets of 64 mini-batches and more begin at
   * multiples of their size.
   */
  first: number;
  /** Exclusively. */
  end: number;
  /** Mini-batches in each bucket, but the last one: a power of two. */
  bucket_size: number;
  /** Found so far; of the whole job once `listing_done`. */
  total: number;
  listing_done: boolean;
  /** Neither decided nor with an agent. */
  waiting: number[];
  /** Mini-batches that agents hold. */
  running: number[];
  completed: number[];
  failed: number[];
  /** Mini-batches of which a try has failed, whatever came after it. */
  retried: number[];
  /** Failed items of completed and of failed mini-batches. */
  failed_items: number[];
  /** Seconds in `run()` of the try that was decided upon; null: none was. */
  min_run_s: (number | null)[];
  /** The lower one of two. */
  median_run_s: (number | null)[];
  max_run_s: (number | null)[];
  /** `samples`: buckets have more than 4,096 mini-batches, and medians are those of every n-th one. */
  median_of: "all" | "samples";
}

/** The workers of a job in time, by node and process. All times are seconds since `start`. */
export interface Timeline {
  /** Share of the existing records that is in the answer; 1: all. If less, ask again: each answer reads on. */
  read_share: number;
  /** Time when the first worker began; null: none has. */
  start: string | null;
  /** Seconds from the start to the end of the last try so far; while workers are there, until now. */
  length_s: number;
  /** Nodes that get code, environment or data now, which all of their workers need. */
  preparing: string[];
  begin_s: number;
  /** The window. */
  end_s: number;
  bucket_s: number;
  /**
   * 0: each try was looked at. Else there are too many in the window: what is in a bucket is exact to so many
   * seconds at each of its ends.
   */
  resolution_s: number;
  lanes: Lane[];
  lanes_total: number;
  /** The slowest tries that are in the window, whatever their lanes: at most twenty. */
  slowest: SlowTry[];
  /** Median of all tries of the job, or of 100,000 of them, in seconds. */
  median_run_s: number | null;
  next_page_token: string | null;
}

/** A token of a person or a service, without its text. */
export interface Token {
  /** The owner of what is made with it. */
  name: string;
  scopes: ("read" | "submit" | "admin")[];
  created: string;
  /** The name of the token with which it was made. */
  created_by: string;
  /** Time from which it is not valid any more; null: never. */
  expires: string | null;
  /** False if it has expired. */
  is_valid: boolean;
}

/** The tokens that this server has made, by name. */
export interface TokenList {
  items: Token[];
}

/** The tries of a worker one by one: each list has a value for each of them. */
export interface TrySpans {
  mini_batch: number[];
  begin_s: number[];
  load_s: number[];
  run_s: number[];
  elapsed_s: number[];
  /** `failed`: for good; `retried`: another try followed. */
  outcome: ("completed" | "failed" | "retried")[];
}

/** The last minutes or hours of a node: shares of what it has, 0 to 1, at the same times in each list. */
export interface UsageHistory {
  at: string[];
  cpu: (number | null)[];
  memory: (number | null)[];
}

/** The use by week and person, the latest week first. */
export interface UsageList {
  items: UsageOfWeek[];
}

/** The use of slots and GPUs by a person in a week. */
export interface UsageOfWeek {
  /** The week by ISO 8601, in UTC. */
  week: string;
  /** The name of a token; empty: whoever runs the server. */
  owner: string;
  /** Hours of workers, from their start to their end: a worker occupies a slot. */
  slot_hours: number;
  /** Hours of GPUs that workers had. */
  gpu_hours: number;
  /** Bytes of the folders of their jobs that have ended, at the last sweep; null: only the latest week has it. */
  job_bytes: number | null;
  /** Bytes of the folders of their jobs that ended in that week, of those that were kept at the last sweep. */
  week_bytes: number;
  /** By `--cost-per-slot-hour` and `--cost-per-gpu-hour`. */
  cost: number;
}

/** The first thing that keeps a job from running. */
export interface Waiting {
  /** The name of the condition that isn't met, as in `GET /v1/jobs/{job_id}/explanation`. */
  condition: string;
  text: string;
  /** Advice in words; empty: it passes by itself. */
  advice: string;
  /** Seconds until it is expected to pass; null: nobody knows. */
  left_s: number | null;
  /** True if only an admin of the cluster can end it, as a pause by one. */
  needs_admin: boolean;
}

/** The work of a node for one job. */
export interface WorkForJob {
  job: string;
  /** The name of the job. */
  name: string;
  /** Busy workers that it has for the job. */
  workers: number;
  /** The owner of the job; empty: whoever runs the server. */
  owner: string;
}

/** A worker. */
export interface WorkerStacks {
  process: string;
  pid: number;
  /** `waits`: for a disk, a lock, a clock, another process. */
  doing: "waits_for_work" | "computes" | "waits" | "unknown";
  /** A remark on the stacks: that the worker stays in one line, or why nothing is known. */
  note: string;
  /** All that run Python, the main thread first. */
  threads: ThreadStack[];
}
