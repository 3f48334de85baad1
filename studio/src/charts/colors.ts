// The page's colors, for canvases: they can't read custom properties.

const NAMES = ["done", "failed", "running", "waiting", "retried", "init", "load", "cold", "hot"] as const;

export type Colors = Record<(typeof NAMES)[number] | "text" | "surface" | "line", string>;

export function colorsNow(): Colors {
  const probe = document.createElement("span");
  probe.hidden = true;
  document.body.append(probe);
  const style = getComputedStyle(probe);
  const value = (name: string): string => {
    probe.style.color = `var(--${name})`;
    return style.color;
  };
  const colors = Object.fromEntries(NAMES.map((name) => [name, value(`fill-${name}`)])) as Colors;
  Object.assign(colors, { text: value("text"), surface: value("surface"), line: value("line") });
  probe.remove();
  return colors;
}
