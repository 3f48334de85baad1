// The tags of a job, as one writes them: `team=vision draft`.

export const written = (tags: Record<string, string>): string[] =>
  Object.entries(tags).map(([name, value]) => (value ? `${name}=${value}` : name));

export interface TagChange {
  set: Record<string, string>;
  remove: string[];
}

/** A change of tags: those that are written, and without those with a minus before them. */
export function changeOf(text: string): TagChange {
  const words = text.split(/\s+/).filter(Boolean);
  const set = words.filter((word) => !word.startsWith("-")).map((word) => /^([^=]*)=?(.*)$/s.exec(word)!.slice(1, 3));
  return {
    set: Object.fromEntries(set) as Record<string, string>,
    remove: words.filter((word) => word.startsWith("-")).map((word) => word.slice(1)),
  };
}
