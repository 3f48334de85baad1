// Comparisons of one job with each of some others, as one table.

import type { Compared, Comparison } from "../../api/types";

export interface SideBySide {
  jobs: Compared[];
  /** Settings in which at least one differs from the first job, with the value of each job. */
  settings: { name: string; values: unknown[] }[];
}

/** `pairs` are of the first job and each of the others, in their order. */
export function sideBySide(pairs: Comparison[]): SideBySide {
  const jobs = pairs.flatMap(({ jobs: [first, other] }, at) => (at ? [other!] : [first!, other!]));
  const names = [...new Set(pairs.flatMap(({ settings }) => settings.map(({ name }) => name)))];
  const settings = names.map((name) => {
    const found = pairs.map((pair) => pair.settings.find((each) => each.name === name)?.values);
    const first = found.find((values) => values !== undefined)?.[0];
    return { name, values: [first, ...found.map((values) => (values === undefined ? first : values[1]))] };
  });
  return { jobs, settings };
}
