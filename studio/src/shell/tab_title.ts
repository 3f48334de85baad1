// What the browser's tab says of the job that is shown: its name, how far it is, and its state as a coloured icon.

import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { isOver } from "../api/live";
import type { Job } from "../api/types";
import { percent } from "../words/numbers";
import { shareOf, standingOf } from "../words/pace";
import { kindOf, worded, type Kind } from "../words/states";
import { titleOf } from "../words/title";

const COLORS: Record<Kind, string> = {
  waiting: "#8a93a6",
  running: "#2f6fed",
  done: "#16803c",
  failed: "#c8322b",
  stopped: "#8a93a6",
};
const ICON = "link[rel=icon]";
const original = document.querySelector<HTMLLinkElement>(ICON)?.href ?? "";

/** Whether somebody wants a notice at the end of the job that is shown. */
export const wantsNotice = signal(false);

export const hasNotices = (): boolean => "Notification" in window;

/** Ask the browser whether notices may be shown, and want one. */
export async function wantNotice(): Promise<void> {
  wantsNotice.value = !wantsNotice.value && (await Notification.requestPermission()) === "granted";
}

/** What a tab is called that shows a job. */
export function tabTitleOf(job: Job): string {
  const standing = standingOf(job);
  const how = standing === "processing" ? percent(shareOf(job)) : worded(standing);
  return `${how} · ${titleOf(job)}`;
}

export function useTabTitle(job: Job | undefined, tab: string): void {
  const title = job && tabTitleOf(job);
  const kind = job && kindOf(standingOf(job));
  useEffect(() => {
    if (title) document.title = `${title}${tab && ` · ${tab}`} · ParallelRun`;
  }, [title, tab]);
  useEffect(() => {
    if (kind) showIcon(iconOf(COLORS[kind]));
    return () => showIcon(original);
  }, [kind]);
  const hasEnded = job !== undefined && isOver(job);
  useEffect(() => {
    if (!hasEnded || !wantsNotice.value) return;
    wantsNotice.value = false;
    new Notification(`${titleOf(job)}: ${worded(job.state)}`, { body: job.summary, tag: job.id });
  }, [hasEnded]);
}

function showIcon(href: string): void {
  const icon = document.querySelector<HTMLLinkElement>(ICON);
  if (icon && href) icon.href = href;
}

const iconOf = (color: string): string =>
  `data:image/svg+xml,${encodeURIComponent(
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><circle cx="16" cy="16" r="14" fill="${color}"/></svg>`,
  )}`;
