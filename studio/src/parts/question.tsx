// A dialog that asks before something is done, shows why it was refused, and closes once it is done.

import type { ComponentChildren, JSX } from "preact";
import { useState } from "preact/hooks";
import type { Problem } from "../api/http";
import { Dialog } from "./dialog";
import { Trouble } from "./notice";

interface Props {
  title: string;
  /** The word on the button that does it. */
  button: string;
  isGrave?: boolean | undefined;
  isDisabled?: boolean | undefined;
  act: () => Promise<unknown>;
  onClose: () => void;
  children: ComponentChildren;
}

export function Question({ title, button, isGrave, isDisabled, act, onClose, children }: Props): JSX.Element {
  const [isBusy, setBusy] = useState(false);
  const [problem, tell] = useState<Problem | undefined>(undefined);
  const refused = (why: Problem): void => {
    tell(why);
    setBusy(false);
  };
  const go = (): void => {
    setBusy(true);
    act().then(onClose, refused);
  };
  return (
    <Dialog title={title} onClose={onClose}>
      {children}
      {problem && <Trouble problem={problem} />}
      <div class="actions">
        <button type="button" onClick={onClose}>
          Leave it
        </button>
        <button type="button" class={isGrave ? "main grave" : "main"} disabled={isBusy || isDisabled} onClick={go}>
          {button}
        </button>
      </div>
    </Dialog>
  );
}
