// Two jobs side by side: where their figures and settings differ.

import type { JSX } from "preact";
import { place } from "../../shell/router";

export function Compare(): JSX.Element {
  const ids = (place.value.query.get("jobs") ?? "").split(",").filter(Boolean);
  return <div class="page"><h1>Compare jobs</h1><p>{ids.join(" ")}</p></div>;
}
