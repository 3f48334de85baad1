// The keys that work everywhere.

import type { JSX } from "preact";
import { Dialog } from "../parts/dialog";
import { isHelpOpen, KEYS } from "./keys";

export function Help(): JSX.Element {
  const close = (): void => {
    isHelpOpen.value = false;
  };
  return (
    <Dialog title="Keys" onClose={close}>
      <dl class="keys">
        {KEYS.map(({ keys, what }) => (
          <div key={keys}>
            <dt>
              {keys
                .split(" ")
                .filter(Boolean)
                .map((key) => (key === "…" ? key : <kbd key={key}>{key}</kbd>))}
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
      <div class="actions">
        <button type="button" onClick={close}>
          Close
        </button>
      </div>
    </Dialog>
  );
}
