// Times and durations as people read them.

const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** Seconds in two units at most: 350 ms, 4.2 s, 3 min 05 s, 2 h 10 min, 5 d 4 h. */
export function duration(seconds: number): string {
  if (seconds < 0.001) return "0 s";
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

const CLOCK = new Intl.DateTimeFormat("en-GB", { timeStyle: "medium" });
const MOMENT = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "medium" });

/** The time of day, by the clock of whoever reads it. */
export const clock = (time: string | number): string => CLOCK.format(new Date(time));
export const moment = (time: string | number): string => MOMENT.format(new Date(time));
