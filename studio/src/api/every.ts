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

/** The time in milliseconds, every second while `isOn`: for durations that grow. */
export function useNow(isOn: boolean): number {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    setNow(Date.now());
    if (!isOn) return;
    const timer = setInterval(() => document.hidden || setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, [isOn]);
  return now;
}
