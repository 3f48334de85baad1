// A bar whose parts are shares of a whole.

import type { JSX } from "preact";
import { percent } from "../words/numbers";

export interface Share {
  kind: "done" | "failed" | "running";
  value: number;
}

interface Props {
  label: string;
  total: number;
  shares: Share[];
  /** The whole isn't known yet. */
  isOpen?: boolean;
}

export function Bar({ label, total, shares, isOpen = false }: Props): JSX.Element {
  const ended = shares.filter(({ kind }) => kind !== "running").reduce((sum, { value }) => sum + value, 0);
  const part = total ? Math.min(1, ended / total) : 0;
  const now = isOpen ? {} : { "aria-valuenow": Math.floor(part * 100) };
  return (
    <div
      class={`bar${isOpen ? " open" : ""}`}
      role="progressbar"
      aria-label={label}
      aria-valuemin={0}
      aria-valuemax={100}
      aria-valuetext={isOpen ? "not known yet" : percent(part)}
      {...now}
    >
      {shares.map(({ kind, value }) => (
        <span key={kind} class={kind} style={{ width: `${total ? Math.min(100, (value / total) * 100) : 0}%` }} />
      ))}
    </div>
  );
}

/** The bar of a job's items, of which it isn't known how many are at work. */
export function itemShares(progress: { items_done: number; items_failed: number; items_short: number }): Share[] {
  return [
    { kind: "done", value: progress.items_done + progress.items_short },
    { kind: "failed", value: progress.items_failed - progress.items_short },
  ];
}

/** The bar of a job's mini-batches. */
export function progressShares(progress: { done: number; failed: number; running: number }): Share[] {
  return [
    { kind: "done", value: progress.done },
    { kind: "failed", value: progress.failed },
    { kind: "running", value: progress.running },
  ];
}
