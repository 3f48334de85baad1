// Which lines of a text were taken away, and which have come: by the longest lines that both have in common.

export interface Change {
  kind: "same" | "gone" | "new";
  line: string;
}

export function changesBetween(before: string, after: string): Change[] {
  const [old, now] = [before.split("\n"), after.split("\n")];
  const common = old.map(() => new Array<number>(now.length + 1).fill(0));
  common.push(new Array<number>(now.length + 1).fill(0));
  for (let i = old.length - 1; i >= 0; i--)
    for (let j = now.length - 1; j >= 0; j--)
      common[i]![j] = old[i] === now[j] ? common[i + 1]![j + 1]! + 1 : Math.max(common[i + 1]![j]!, common[i]![j + 1]!);
  const changes: Change[] = [];
  let [i, j] = [0, 0];
  while (i < old.length || j < now.length) {
    if (i < old.length && j < now.length && old[i] === now[j]) {
      changes.push({ kind: "same", line: old[i++]! });
      j++;
    } else if (i < old.length && (j >= now.length || common[i + 1]![j]! >= common[i]![j + 1]!))
      changes.push({ kind: "gone", line: old[i++]! });
    else changes.push({ kind: "new", line: now[j++]! });
  }
  return changes;
}
