// When a schedule is due, in words.

/** A trigger as its document has it: `{type: cron, expression: …}` or `{type: recurrence, frequency: …}`. */
export function dueOf({ type, expression, frequency, interval, time_zone, ...more }: Record<string, unknown>): string {
  const every = Number(interval ?? 1);
  const unit = String(frequency);
  const when = type === "cron" ? String(expression) : `every ${every === 1 ? unit : `${every} ${unit}s`}`;
  const others = Object.entries(more)
    .filter(([, value]) => value !== null && value !== undefined)
    .map(([name, value]) => `${name} ${typeof value === "object" ? JSON.stringify(value) : String(value)}`);
  return [when, `by the clocks of ${String(time_zone ?? "UTC")}`, ...others].join(", ");
}
