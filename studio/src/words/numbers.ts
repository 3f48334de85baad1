// Numbers as people read them.

const WHOLE = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const SHORT = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3 });
const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

export const count = (value: number): string => WHOLE.format(value);

/** Three digits that count: 1.23K, 45.6M. */
export const short = (value: number): string => SHORT.format(value);

/** `one` or `many` with the number before it. */
export const counted = (value: number, one: string, many = `${one}s`): string =>
  `${count(value)} ${value === 1 ? one : many}`;

export function bytes(value: number): string {
  const power = Math.min(Math.floor(Math.log2(Math.max(value, 1)) / 10), UNITS.length - 1);
  const scaled = value / 2 ** (10 * power);
  return `${power && scaled < 99.95 ? scaled.toPrecision(3) : WHOLE.format(scaled)} ${UNITS[power]}`;
}

export function rate(perSecond: number): string {
  if (!Number.isFinite(perSecond) || perSecond <= 0) return "–";
  return perSecond < 0.1 ? `${short(perSecond * 60)}/min` : `${short(perSecond)}/s`;
}

/** A share of 1. Never 100 % or 0 % when it is only nearly so. */
export function percent(share: number): string {
  if (share > 0 && share < 0.01) return "<1 %";
  if (share < 1 && share > 0.99) return ">99 %";
  return `${Math.round(share * 100)} %`;
}
