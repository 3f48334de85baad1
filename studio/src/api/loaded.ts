// What a view has asked the server for, and asks again when that may have changed.

import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { Asking } from "./asking";
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

/** Load at once when `key` or `asked` changes, what else the question depends on, and in a while when `revision` does. What
 * was loaded for another key isn't shown for this one. */
export function useLoaded<T>(
  key: string,
  load: (signal: AbortSignal) => Promise<T>,
  revision: unknown = 0,
  asked = "",
): Loaded<T> {
  const [held, hold] = useState<Held<T>>({ key });
  const [round, setRound] = useState(0);
  const latest = useRef(load);
  latest.current = load;
  const asking = useRef<Asking<T> | undefined>(undefined);
  const signedOut = mustSignIn.value;

  // Both before the next frame, so that a click doesn't wait for it, and that they ask once.
  useLayoutEffect(() => {
    const own = new Asking<T>(
      (signal) => latest.current(signal),
      (value) => hold({ key, value }),
      (problem) => hold((before) => (before.key === key ? { ...before, problem } : { key, problem })),
    );
    asking.current = own;
    own.again();
    return () => own.stop();
  }, [key, asked, round, signedOut]);
  useLayoutEffect(() => asking.current?.again(), [revision]);

  const own = held.key === key ? held : { key };
  return { value: own.value, problem: own.problem, reload: () => setRound((each) => each + 1) };
}

const READ_ON_MS = 200;

/** The same for what the server reads bit by bit: it is asked again until all of the job's records are in the answer. */
export function usePicture<T extends { read_share: number }>(
  key: string,
  load: (signal: AbortSignal) => Promise<T>,
  revision: unknown = 0,
  asked = "",
): Loaded<T> {
  const loaded = useLoaded(key, load, revision, asked);
  const { value } = loaded;
  useEffect(() => {
    if (!value || value.read_share >= 1) return;
    const timer = setTimeout(loaded.reload, READ_ON_MS);
    return () => clearTimeout(timer);
  }, [value]);
  return loaded;
}
