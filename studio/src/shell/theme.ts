// Dark, light, or what the system says.

import { signal } from "@preact/signals";

export type Theme = "system" | "light" | "dark";

const NAME = "parallelrun-theme";
const THEMES: Theme[] = ["system", "light", "dark"];

export const theme = signal<Theme>(stored());
/** Grows when colours change: what is drawn on a canvas has to be drawn again. */
export const paint = signal(0);

export function startTheme(): void {
  apply();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => paint.value++);
}

export function nextTheme(): void {
  theme.value = THEMES[(THEMES.indexOf(theme.value) + 1) % THEMES.length]!;
  try {
    localStorage.setItem(NAME, theme.value);
  } catch {
    // A browser that stores nothing forgets it, and that is all.
  }
  apply();
}

function apply(): void {
  if (theme.value === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme.value;
  paint.value++;
}

function stored(): Theme {
  try {
    const value = localStorage.getItem(NAME) as Theme;
    return THEMES.includes(value) ? value : "system";
  } catch {
    return "system";
  }
}
