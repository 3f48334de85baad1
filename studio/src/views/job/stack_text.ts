// The stack of a thread as text, the innermost call first.

import type { ThreadStack } from "../../api/types";

export function textOf({ is_main, name, frames }: ThreadStack): string {
  const lines = frames.map(({ file, line, function: called }) => `  ${called}  ${file}${line ? `:${line}` : ""}`);
  return [is_main ? "main thread" : `thread ${name}`, ...(lines.length ? lines : ["  outside of the script"])].join(
    "\n",
  );
}
