// One of a few, all of them in sight.

import type { JSX } from "preact";

interface Props {
  label: string;
  value: string;
  /** What each is called. */
  options: Record<string, string>;
  onChange: (value: string) => void;
}

export function Choice({ label, value, options, onChange }: Props): JSX.Element {
  return (
    <div class="choices" role="group" aria-label={label}>
      {Object.entries(options).map(([each, name]) => (
        <button key={each} type="button" aria-pressed={each === value} onClick={() => onChange(each)}>
          {name}
        </button>
      ))}
    </div>
  );
}
