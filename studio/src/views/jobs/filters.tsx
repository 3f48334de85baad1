// What narrows the list of jobs.

import type { JSX } from "preact";
import { Icon } from "../../parts/icon";
import { Mark } from "../../parts/state";
import { place } from "../../shell/router";
import { worded } from "../../words/states";

const STATES = ["", "queued", "processing", "finalizing", "completed", "failed", "canceled"];

interface Props {
  state: string;
  text: string;
  onText: (text: string) => void;
}

export function Filters({ state, text, onText }: Props): JSX.Element {
  return (
    <div class="filters">
      <nav class="choices" aria-label="State">
        {STATES.map((each) => (
          <a key={each} href={linkTo(each)} aria-current={each === state ? "true" : undefined}>
            {each ? <Mark state={each} /> : null}
            {each ? worded(each) : "all"}
          </a>
        ))}
      </nav>
      <label class="search">
        <Icon name="search" />
        <span class="unseen">Name, id or tag</span>
        <input
          type="search"
          placeholder="Name, id or tag"
          value={text}
          onInput={(event) => onText(event.currentTarget.value)}
        />
      </label>
    </div>
  );
}

function linkTo(state: string): string {
  const query = new URLSearchParams(place.value.query);
  if (state) query.set("state", state);
  else query.delete("state");
  return `/jobs${query.size ? "?" : ""}${query.toString()}`;
}
