// One question to the server, asked again and again: one at a time, and seldom if the answer takes long.

import type { Problem } from "./http";

/** A page must not keep a server busy: for each second that an answer takes, it is left alone for so many. */
const REST = 50;
const QUICK_MS = 40;
const LONGEST_REST_MS = 8_000;
const RETRY_MS = 2000;

export class Asking<T> {
  private readonly abort = new AbortController();
  private timer: ReturnType<typeof setTimeout> | undefined;
  private isBusy = false;
  private isWanted = false;
  private isDue = false;
  private restUntil = 0;

  constructor(
    private readonly load: (signal: AbortSignal) => Promise<T>,
    private readonly answered: (value: T) => void,
    private readonly refused: (problem: Problem) => void,
  ) {}

  /** Ask as soon as it may be asked again; once for any number of calls before that. */
  again(): void {
    if (this.isBusy) this.isWanted = true;
    else this.after(Math.max(0, this.restUntil - performance.now()));
  }

  stop(): void {
    clearTimeout(this.timer);
    this.abort.abort();
  }

  private after(ms: number): void {
    clearTimeout(this.timer);
    if (ms > 0) this.timer = setTimeout(() => void this.ask(), ms);
    else if (!this.isDue) {
      // Before the next frame is painted, so that the server answers meanwhile; a timer would fire after it.
      this.isDue = true;
      queueMicrotask(() => void this.ask());
    }
  }

  private async ask(): Promise<void> {
    this.isDue = false;
    if (this.abort.signal.aborted) return;
    const began = performance.now();
    this.isBusy = true;
    this.isWanted = false;
    let hasPassingProblem = false;
    try {
      const value = await this.load(this.abort.signal);
      if (!this.abort.signal.aborted) this.answered(value);
    } catch (error) {
      if (!this.abort.signal.aborted) this.refused(error as Problem);
      hasPassingProblem = isPassing(error as Problem);
    }
    this.isBusy = false;
    if (this.abort.signal.aborted) return;
    const took = performance.now() - began;
    this.restUntil = performance.now() + (took < QUICK_MS ? 0 : Math.min(LONGEST_REST_MS, REST * took));
    if (hasPassingProblem) this.after(RETRY_MS);
    else if (this.isWanted) this.again();
  }
}

/** Whether asking again may help by itself: the server is away, or starts. */
function isPassing(problem: Problem): boolean {
  return problem.status === 0 || problem.status >= 500;
}
