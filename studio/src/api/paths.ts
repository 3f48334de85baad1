// Where the API has what: paths with every part of them encoded.

export type Query = Record<string, string | number | undefined>;

export function apiPath(path: string, query: Query = {}): string {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== "");
  const asked = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
  return `/v1${path}${asked && "?"}${asked}`;
}

export const jobPath = (id: string, rest = "", query: Query = {}): string =>
  apiPath(`/jobs/${encodeURIComponent(id)}${rest}`, query);

/** A file of a job: `kind` is the folder, and slashes in the path stay what they are. */
export const filePath = (id: string, kind: "logs" | "outputs", path: string, query: Query = {}): string =>
  jobPath(id, `/${kind}/${path.split("/").map(encodeURIComponent).join("/")}`, query);
