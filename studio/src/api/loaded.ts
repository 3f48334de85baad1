// What a view has asked the server for, and asks again when that may have changed.

import { useEffect, useRef, useState } from "preact/hooks";
import { mustSignIn, type Problem } from "./http";

export interface Loaded<T> {
  /** The latest answer; while it is asked for again, the one before. */
  value: T | undefined;
  /** Why there is no newer one. */
  problem: Problem | undefined;
  reload: () => void;
}

interface Held<T> {
  key: string;
  value?: T;
  problem?: Problem;
}

const RETRY_MS = 2000;

/** Load whenever `key` or `revision` changes. What was loaded for another key isn't shown for this one. */
export function useLoaded<T>(key: string, load: (signal: AbortSignal) => Promise<T>, revision: unknown = 0): Loaded<T> {
  const [held, hold] = useState<Held<T>>({ key });
  const [round, setRound] = useState(0);
  const latest = useRef(load);
  latest.current = load;
  const reload = (): void => setRound((each) => each + 1);
  const signedOut = mustSignIn.value;

  useEffect(() => {
    const abort = new AbortController();
    latest.current(abort.signal).then(
      (value) => abort.signal.aborted || hold({ key, value }),
      (problem: Problem) => {
        if (abort.signal.aborted) return;
        hold((before) => (before.key === key ? { ...before, problem } : { key, problem }));
        if (isPassing(problem)) setTimeout(() => abort.signal.aborted || reload(), RETRY_MS);
      },
    );
    return () => abort.abort();
  }, [key, revision, round, signedOut]);

  const own = held.key === key ? held : { key };
  return { value: own.value, problem: own.problem, reload };
}

const READ_ON_MS = 200;

/** The same for what the server reads bit by bit: it is asked again until all of the job's records are in the answer. */
export function usePicture<T extends { read_share: number }>(key: string, load: (signal: AbortSignal) => Promise<T>, revision: unknown = 0): Loaded<T> {
  const loaded = useLoaded(key, load, revision);
  const { value } = loaded;
  useEffect(() => {
    if (!value || value.read_share >= 1) return;
    const timer = setTimeout(loaded.reload, READ_ON_MS);
    return () => clearTimeout(timer);
  }, [value]);
  return loaded;
}

/** Whether asking again may help by itself: the server is away, or starts. */
function isPassing(problem: Problem): boolean {
  return problem.status === 0 || problem.status >= 500;
}
