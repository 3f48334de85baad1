// The page's colors, for canvases: they can't read custom properties.

import { computed } from "@preact/signals";
import { paint } from "../shell/theme";

const NAMES = ["done", "failed", "running", "waiting", "retried", "init", "load", "cold", "hot"] as const;

export type Colors = Record<(typeof NAMES)[number] | "text" | "surface" | "line", string>;

/** Read once for each paint of the page: the browser works out the style of the whole page for it. */
export const colors = computed<Colors>(() => {
  void paint.value;
  const names = [...NAMES.map((name) => `fill-${name}`), "text", "surface", "line"];
  const probes = names.map((name) => {
    const probe = document.createElement("span");
    probe.hidden = true;
    probe.style.color = `var(--${name})`;
    return probe;
  });
  document.body.append(...probes);
  const values = probes.map((probe, at) => [names[at]!.replace("fill-", ""), getComputedStyle(probe).color]);
  for (const probe of probes) probe.remove();
  return Object.fromEntries(values) as Colors;
});
