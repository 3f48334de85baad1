// What is asked again and again, but only while somebody looks.

import { useEffect, useState } from "preact/hooks";

/** A number that grows every `ms` while the page is visible, and at once when it becomes visible again. */
export function useEvery(ms: number): number {
  const [round, setRound] = useState(0);
  useEffect(() => {
    const next = (): void => setRound((each) => each + 1);
    const timer = setInterval(() => document.hidden || next(), ms);
    const shown = (): void => void (document.hidden || next());
    document.addEventListener("visibilitychange", shown);
    return () => {
      clearInterval(timer);
      document.removeEventListener("visibilitychange", shown);
    };
  }, [ms]);
  return round;
}

const SELDOM_MS = 10_000;

/** The time in milliseconds: every second while `isOn`, for durations that grow, and seldom otherwise. */
export function useNow(isOn: boolean): number {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    setNow(Date.now());
    const timer = setInterval(() => document.hidden || setNow(Date.now()), isOn ? 1000 : SELDOM_MS);
    return () => clearInterval(timer);
  }, [isOn]);
  return now;
}
