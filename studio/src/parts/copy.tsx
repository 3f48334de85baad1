// Text to take along: a button that copies, and says that it has.

import type { ComponentChildren, JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Icon } from "./icon";

interface Props {
  text: string;
  /** What is copied, for those who don't see what is beside the button. */
  label: string;
  children?: ComponentChildren;
}

export function Copy({ text, label, children }: Props): JSX.Element {
  const [isDone, setDone] = useState(false);
  useEffect(() => {
    if (!isDone) return;
    const timer = setTimeout(() => setDone(false), 1500);
    return () => clearTimeout(timer);
  }, [isDone]);
  return (
    <button
      type="button"
      class={children ? "quiet" : "bare"}
      aria-label={children ? undefined : label}
      title={label}
      onClick={() => void copy(text).then(setDone)}
    >
      <Icon name={isDone ? "check" : "copy"} />
      {children}
      <span role="status" class="unseen">
        {isDone ? "Copied" : ""}
      </span>
    </button>
  );
}

/** Pages that don't come over TLS or from this machine have no clipboard of the new kind. */
async function copy(text: string): Promise<boolean> {
  if (navigator.clipboard)
    return navigator.clipboard.writeText(text).then(
      () => true,
      () => false,
    );
  const field = document.createElement("textarea");
  field.value = text;
  document.body.append(field);
  field.select();
  const isDone = document.execCommand("copy");
  field.remove();
  return isDone;
}
