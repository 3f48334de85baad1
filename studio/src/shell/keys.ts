// Keys that work everywhere. Letters alone, and never while somebody writes.

import { signal } from "@preact/signals";
import { go, place } from "./router";

export const isHelpOpen = signal(false);

export const KEYS: { keys: string; what: string }[] = [
  { keys: "g j", what: "all jobs" },
  { keys: "g s", what: "schedules" },
  { keys: "g l", what: "library: assets, datastores, endpoints" },
  { keys: "g n", what: "nodes" },
  { keys: "/", what: "search, or filter" },
  { keys: "j  k", what: "next and previous row, or mini-batch that is open" },
  { keys: "Enter", what: "open the row" },
  { keys: "1 … 9", what: "the tabs of a job" },
  { keys: "← → + − 0", what: "move and zoom in a chart that has the focus" },
  { keys: "?", what: "these keys" },
];

const GO: Record<string, string> = { j: "/jobs", s: "/schedules", l: "/library", n: "/nodes" };
let isGoing = false;

export function startKeys(): void {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || isWriting(event.target as Element)) return;
    if (document.querySelector("dialog[open]")) return;
    if (act(event.key)) event.preventDefault();
  });
}

function act(key: string): boolean {
  if (isGoing) {
    isGoing = false;
    const to = GO[key];
    if (to) go(to);
    return to !== undefined;
  }
  if (key === "g") isGoing = true;
  else if (key === "?") isHelpOpen.value = true;
  else if (key === "/") document.querySelector<HTMLInputElement>("main input[type=search]")?.focus();
  else if (key === "j" || key === "k") step(key === "j" ? 1 : -1);
  else if (/^[1-9]$/.test(key)) return openTab(Number(key));
  else return false;
  return true;
}

const isWriting = (element: Element): boolean =>
  element.matches("input:not([type=checkbox]), textarea, select, [contenteditable]");

/** The rows that one can open are those with a link of this class. */
function step(by: number): void {
  const rows = [...document.querySelectorAll<HTMLElement>("main a.row")];
  const open = rows.findIndex((row) => row.getAttribute("aria-current") === "true");
  const focused = rows.indexOf(document.activeElement as HTMLElement);
  const at = focused < 0 ? open : focused;
  const next = rows[Math.max(0, Math.min(rows.length - 1, at < 0 ? 0 : at + by))];
  next?.focus();
  if (open >= 0) next?.click();
}

function openTab(number: number): boolean {
  const tab = document.querySelectorAll<HTMLAnchorElement>(".tabs a")[number - 1];
  if (!tab || !place.value.path.startsWith("/jobs/")) return false;
  tab.click();
  return true;
}
