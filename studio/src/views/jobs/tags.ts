// The tags of a job, as one writes them.

export const written = (tags: Record<string, unknown>): string[] =>
  Object.entries(tags).map(([name, value]) => (value === "" || value === null ? name : `${name}=${String(value)}`));

export function tagsOf(spec: Record<string, unknown>): string[] {
  const tags = spec["tags"];
  return typeof tags === "object" && tags !== null ? written(tags as Record<string, unknown>) : [];
}
