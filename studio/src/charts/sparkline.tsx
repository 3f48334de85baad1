// The last measurements as two small lines, shares of 1. What they say in words is for those who don't see them.

import type { JSX } from "preact";

const [WIDTH, HEIGHT] = [120, 24];

interface Props {
  label: string;
  first: (number | null)[];
  second: (number | null)[];
}

export function Sparkline({ label, first, second }: Props): JSX.Element {
  const path = (values: (number | null)[]): string => {
    const step = WIDTH / Math.max(1, values.length - 1);
    return values
      .map((value, index) =>
        value === null ? "" : `${(index * step).toFixed(1)},${(HEIGHT - 1 - value * (HEIGHT - 2)).toFixed(1)}`,
      )
      .join(" ");
  };
  return (
    <svg class="sparkline" width={WIDTH} height={HEIGHT} role="img" aria-label={label}>
      <polyline class="second" points={path(second)} />
      <polyline class="first" points={path(first)} />
    </svg>
  );
}
