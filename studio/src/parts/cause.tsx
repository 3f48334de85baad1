// What has gone wrong with a try, in a few words; its code, by which programs know it, where one points at it.

import type { JSX } from "preact";
import { causeOf } from "../words/errors";

export function Cause({ category }: { category: string }): JSX.Element {
  return (
    <span class="chip failed" title={category}>
      {causeOf(category)}
    </span>
  );
}
