// A job as it changes: one event stream for the job that is shown, and none while nobody looks.
//
// A browser opens at most six connections to a server that speaks HTTP/1.1, for all tabs together. So a hidden tab lets
// go of its stream, and begins with a new snapshot when it is shown again.

import { signal, type Signal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { getJson, isReachable, mustSignIn, type Problem } from "./http";
import { jobPath } from "./paths";
import { refreshSession } from "./session";
import type { Job } from "./types";

export interface LiveJob {
  job: Signal<Job | undefined>;
  problem: Signal<Problem | undefined>;
  /** Grows at most once a second while something happens to the job: what shows more of it loads anew. */
  revision: Signal<number>;
  /** The events of this view, the latest last. */
  events: Signal<LiveEvent[]>;
  isLive: Signal<boolean>;
  /** Have the events from before this view, too, as far as the server remembers them. */
  readPast: () => void;
  /** Begin anew: after something was done to the job. */
  restart: () => void;
}

export interface LiveEvent {
  at: number;
  name: string;
  data: Record<string, unknown>;
}

const MOST_EVENTS = 500;
const REVISION_MS = 1000;
const RETRY_MS = 2000;
const QUIET_MS = 5000;
/** The id before that of the first event. */
const BEGINNING = "0";
const TERMINAL = new Set(["completed", "failed", "canceled"]);

export const isOver = (job: { state: string }): boolean => TERMINAL.has(job.state);

/** Follow a job for as long as the component that calls it is there. */
export function useLiveJob(id: string): LiveJob {
  const live = useMemo(() => new Follower(id), [id]);
  const signedOut = mustSignIn.value;
  useEffect(() => live.follow(), [live, signedOut]);
  return live;
}

class Follower implements LiveJob {
  job = signal<Job | undefined>(undefined);
  problem = signal<Problem | undefined>(undefined);
  revision = signal(0);
  events = signal<LiveEvent[]>([]);
  isLive = signal(false);
  private stream: EventSource | undefined;
  private timers = new Set<ReturnType<typeof setTimeout>>();
  private isRevisionDue = false;
  private wantsPast = false;
  private round = 0;
  /** When the event that is handled has happened: an id begins with that. */
  private at = 0;

  constructor(private readonly id: string) {}

  follow(): () => void {
    const seen = (): void => (document.hidden ? this.close() : this.restart());
    document.addEventListener("visibilitychange", seen);
    this.restart();
    return () => {
      document.removeEventListener("visibilitychange", seen);
      this.close();
    };
  }

  readPast = (): void => {
    if (this.wantsPast) return;
    this.wantsPast = true;
    if (this.job.value) this.restart();
  };

  restart = (): void => {
    this.close();
    void this.begin(this.round);
  };

  private close(): void {
    this.round++;
    this.stream?.close();
    this.stream = undefined;
    this.isLive.value = false;
    this.timers.forEach(clearTimeout);
    this.timers.clear();
    this.isRevisionDue = false;
  }

  private async begin(round: number): Promise<void> {
    try {
      const job = await getJson<Job>(jobPath(this.id));
      if (round !== this.round) return;
      this.problem.value = undefined;
      this.show(job);
      if (!isOver(job) || this.wantsPast) this.open(round);
    } catch (error) {
      if (round !== this.round) return;
      this.problem.value = error as Problem;
      const { status } = error as Problem;
      if (status === 0 || status >= 500) this.later(RETRY_MS, this.restart);
    }
  }

  private open(round: number): void {
    const stream = new EventSource(jobPath(this.id, "/events", this.wantsPast ? { last_event_id: BEGINNING } : {}));
    this.stream = stream;
    if (this.wantsPast) this.events.value = [];
    stream.onopen = () => {
      this.isLive.value = isReachable.value = true;
      this.keepUp();
    };
    // The browser would connect again by itself, but not after a refusal, and without a word about why.
    stream.onerror = (event) => {
      if (round !== this.round || event instanceof MessageEvent) return; // the server's own events may be called so
      this.close();
      void refreshSession(); // the server ends a stream with the session, too
      // Of a job that has ended, only events can be missing; they are on Redis, and it may be gone.
      if (!this.job.value || !isOver(this.job.value)) this.later(RETRY_MS, this.restart);
    };
    const on = (name: string, handle: (data: never) => void): void =>
      stream.addEventListener(name, (event) => {
        if (!(event instanceof MessageEvent)) return;
        this.at = Number.parseInt(event.lastEventId, 10) || Date.now();
        handle(JSON.parse(event.data as string) as never);
        this.changed();
      });
    on("snapshot", (job: Job) => this.show(job));
    on("end", (job: Job) => {
      this.close();
      this.show(job);
    });
    on("progress", (progress: Job["progress"]) => this.change({ progress }));
    on("state", (data: { state: Job["state"] }) => {
      this.noted("state", data);
      this.change(data);
    });
    for (const name of ["error", "size", "step", "steps"])
      on(name, (data: Record<string, unknown>) => this.noted(name, data));
  }

  private show(job: Job): void {
    this.job.value = job;
    this.revision.value++;
  }

  private change(part: Partial<Job>): void {
    if (this.job.value) this.job.value = { ...this.job.value, ...part };
  }

  private noted(name: string, data: Record<string, unknown>): void {
    this.events.value = [...this.events.value.slice(1 - MOST_EVENTS), { at: this.at, name, data }];
    if (name === "step" || name === "state") void this.refresh();
  }

  /** What events don't say of a job: its pace, the steps of a pipeline, when it began. */
  private async refresh(): Promise<void> {
    const { round } = this;
    const job = await getJson<Job>(jobPath(this.id)).catch(() => undefined);
    if (job && round === this.round && this.stream) this.job.value = job;
  }

  /** A job of which nothing is heard gets slower all the same. */
  private keepUp(): void {
    this.later(QUIET_MS, () => {
      void this.refresh();
      this.keepUp();
    });
  }

  private changed(): void {
    if (this.isRevisionDue) return;
    this.isRevisionDue = true;
    this.later(REVISION_MS, () => {
      this.isRevisionDue = false;
      this.revision.value++;
      void this.refresh();
    });
  }

  private later(ms: number, what: () => void): void {
    const timer = setTimeout(() => {
      this.timers.delete(timer);
      what();
    }, ms);
    this.timers.add(timer);
  }
}
