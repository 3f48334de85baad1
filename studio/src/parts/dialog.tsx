// A dialog over the page. The browser's own: it keeps the focus inside, and gives it back.

import type { ComponentChildren, JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";

interface Props {
  title: string;
  onClose: () => void;
  children: ComponentChildren;
}

export function Dialog({ title, onClose, children }: Props): JSX.Element {
  const own = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const dialog = own.current!;
    dialog.showModal();
    return () => dialog.close();
  }, []);
  return (
    <dialog
      ref={own}
      aria-labelledby="dialog-title"
      onClose={onClose}
      onClick={(event) => event.target === own.current && onClose()}
    >
      <div class="sheet">
        <h2 id="dialog-title">{title}</h2>
        {children}
      </div>
    </dialog>
  );
}
