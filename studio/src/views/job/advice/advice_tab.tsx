// What would make the job faster, cheaper or safer, and what other settings would give.

import type { JSX } from "preact";
import type { TabProps } from "../tab_props";
import { AdviceCard } from "./advice_card";
import { WhatIf } from "./what_if";

export function AdviceTab({ job }: TabProps): JSX.Element {
  return (
    <div class="stack">
      <AdviceCard job={job} saysNothing />
      <WhatIf job={job} />
    </div>
  );
}
