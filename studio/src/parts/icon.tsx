// Small drawings, each on a grid of 16. They are never the only thing that says something.

import type { JSX } from "preact";

const PATHS = {
  check: "M3.5 8.5l3 3 6-7",
  cross: "M4.5 4.5l7 7m0-7l-7 7",
  copy: "M6 5.5V3.5a1 1 0 0 1 1-1h5.500a1 1 0 0 1 1 1V9a1 1 0 0 1-1 1h-2M3.500 6H9a1 1 0 0 1 1 1v5.500a1 1 0 0 1-1 1H3.500a1 1 0 0 1-1-1V7a1 1 0 0 1 1-1z",
  sun: "M8 5a3 3 0 1 0 0 6 3 3 0 0 0 0-6zM8 1.500v1M8 13.500v1M1.500 8h1M13.500 8h1M3.400 3.400l.7.7M11.900 11.900l.7.7M3.400 12.600l.7-.7M11.900 4.100l.7-.7",
  moon: "M13 9.500A5.500 5.500 0 1 1 6.500 3 4.500 4.500 0 0 0 13 9.500z",
  system: "M2.500 3.500h11v7h-11zM6 13.500h4M8 10.500v3",
  help: "M6 6a2 2 0 1 1 2.800 1.800c-.5.3-.8.7-.8 1.400M8 11.600v.2",
  down: "M8 2.500v8M4.500 7.500L8 11l3.500-3.500M3 13.500h10",
  search: "M7 2.500a4.500 4.500 0 1 0 0 9 4.500 4.500 0 0 0 0-9zM10.500 10.500l3 3",
  stop: "M4.500 4.500h7v7h-7z",
  again: "M12.500 6A5 5 0 1 0 13 9M13 2.500V6H9.500",
  pause: "M5.500 3.500v9M10.500 3.500v9",
  play: "M5 3.500l7 4.500-7 4.500z",
  warning: "M8 2.500l6 11H2zM8 6.500V10M8 11.800v.2",
  leave: "M6.500 3H3.500v10h3M10 5.500L12.500 8 10 10.500M12.500 8h-6",
  link: "M6.500 9.500l3-3M7.500 4.500l1-1a2.800 2.800 0 0 1 4 4l-1 1M8.500 11.500l-1 1a2.800 2.800 0 0 1-4-4l1-1",
  right: "M6 3.500L10.500 8 6 12.500",
  bulb: "M6 11.500h4M6.500 13.500h3M5.900 9.600A4 4 0 1 1 10.100 9.600c-.4.4-.6.9-.6 1.900h-3c0-1-.2-1.500-.6-1.900z",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name }: { name: IconName }): JSX.Element {
  return (
    <svg class="icon" viewBox="0 0 16 16" aria-hidden="true">
      <path d={PATHS[name]} />
    </svg>
  );
}
