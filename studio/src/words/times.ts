// Times and durations as people read them.

import { computed, signal } from "@preact/signals";

const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** Seconds in two units at most: 350 ms, 4.2 s, 3 min 05 s, 2 h 10 min, 5 d 4 h. */
export function duration(seconds: number): string {
  if (seconds < 0.001) return seconds > 0 ? "<1 ms" : "0 s";
  if (seconds < 0.9995) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < MINUTE) return `${Math.round(seconds)} s`;
  const whole = Math.round(seconds);
  if (whole < HOUR) return parts(whole, MINUTE, "min", 1, "s");
  return whole < DAY ? parts(whole, HOUR, "h", MINUTE, "min") : parts(whole, DAY, "d", HOUR, "h");
}

function parts(whole: number, large: number, name: string, small: number, other: string): string {
  const rest = Math.floor((whole % large) / small);
  return `${Math.floor(whole / large)} ${name}${rest ? ` ${String(rest).padStart(2, "0")} ${other}` : ""}`;
}

/** How long ago, roughly. */
export function age(time: string, now: number): string {
  const seconds = (now - Date.parse(time)) / 1000;
  if (seconds < 10) return "just now";
  if (seconds < MINUTE) return `${Math.floor(seconds)} s ago`;
  if (seconds < HOUR) return `${Math.floor(seconds / MINUTE)} min ago`;
  return seconds < 2 * DAY ? `${Math.floor(seconds / HOUR)} h ago` : `${Math.floor(seconds / DAY)} d ago`;
}

export const secondsBetween = (from: string | number, to: string | number): number =>
  (new Date(to).getTime() - new Date(from).getTime()) / 1000;

/** `local`: that of the browser. */
export type Zone = "local" | "UTC";

const NAME = "parallelrun-zone";

/** The zone of all times of the page. Logs are in UTC, whatever this is. */
export const zone = signal<Zone>(storedZone());

export function switchZone(): void {
  zone.value = zone.value === "UTC" ? "local" : "UTC";
  try {
    localStorage.setItem(NAME, zone.value);
  } catch {
    // A browser that stores nothing forgets it, and that is all.
  }
}

function storedZone(): Zone {
  try {
    return localStorage.getItem(NAME) === "UTC" ? "UTC" : "local";
  } catch {
    return "local";
  }
}

/** A way to write times, in the zone that is chosen. */
export const written = (options: Intl.DateTimeFormatOptions): Intl.DateTimeFormat =>
  new Intl.DateTimeFormat("en-GB", { ...options, ...(zone.value === "UTC" ? { timeZone: "UTC" } : {}) });

const CLOCK = { hour: "2-digit", minute: "2-digit", second: "2-digit", timeZoneName: "short" } as const;
const DATE = { day: "numeric", month: "short", year: "numeric" } as const;
/** Each is made once: that takes longer than writing a time. */
const formats = computed(() => ({ clock: written(CLOCK), moment: written({ ...DATE, ...CLOCK }) }));

/** The time of day, with its zone. */
export const clock = (time: string | number): string => formats.value.clock.format(new Date(time));
export const moment = (time: string | number): string => formats.value.moment.format(new Date(time));

/** What the zone is called that is chosen. */
export const zoneName = (): string => clock(Date.now()).split(" ").slice(1).join(" ");
