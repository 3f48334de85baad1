// A job in pictures, as the server computes them: as many buckets as a screen has room for.

/** How much of the records that are there was looked at; 1: all. If less, ask again. */
interface AsRead {
  read_share: number;
}

/** Mini-batches in buckets of neighbors: bucket i begins with mini-batch `first + i * bucket_size`. */
export interface Tiles extends AsRead {
  first: number;
  end: number;
  bucket_size: number;
  total: number;
  listing_done: boolean;
  waiting: number[];
  running: number[];
  completed: number[];
  failed: number[];
  retried: number[];
  failed_items: number[];
  min_run_s: (number | null)[];
  median_run_s: (number | null)[];
  max_run_s: (number | null)[];
}

export interface TrySpans {
  mini_batch: number[];
  begin_s: number[];
  load_s: number[];
  run_s: number[];
  elapsed_s: number[];
  outcome: ("completed" | "failed" | "retried")[];
}

export interface Lane {
  node: string;
  process: string;
  begin_s: number;
  end_s: number;
  tries: number;
  failed_tries: number;
  init: number[];
  load: number[];
  run: number[];
  spans: TrySpans | null;
}

export interface SlowTry {
  mini_batch: number;
  node: string;
  process: string;
  begin_s: number;
  run_s: number;
  times_median: number;
}

export interface Timeline extends AsRead {
  start: string | null;
  length_s: number;
  begin_s: number;
  end_s: number;
  bucket_s: number;
  lanes: Lane[];
  lanes_total: number;
  slowest: SlowTry[];
  median_run_s: number | null;
  next_page_token: string | null;
}

export interface Throughput extends AsRead {
  start: string | null;
  begin_s: number;
  bucket_s: number;
  mini_batches: number[];
  items: number[];
  failed: number[];
  retried: number[];
  busy_workers: number[];
  first_try_s: number | null;
  last_try_s: number | null;
}

export interface KindOfError {
  category: string;
  place: string;
  message: string;
  traceback: string;
  has_several_messages: boolean;
  count: number;
  mini_batches: number[];
  node: string;
  process: string;
  log: string;
}

export interface KindsOfErrors extends AsRead {
  items: KindOfError[];
  count: number;
  left_out: number;
}
