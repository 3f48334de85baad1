// Addresses of what belongs to a job: whatever is shown somewhere can be gone to.

const tab = (job: string, name: string, query: Record<string, string>): string =>
  `/jobs/${encodeURIComponent(job)}/${name}?${new URLSearchParams(query).toString()}`;

export const linkToMiniBatch = (job: string, id: number): string => tab(job, "mini-batches", { id: String(id) });

/** A log, at the line that begins at this byte. */
export const linkToLog = (job: string, path: string, offset?: number): string =>
  tab(job, "logs", { path, ...(offset === undefined ? {} : { at: String(offset) }) });
