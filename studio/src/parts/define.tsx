// What is made and changed by a document that defines it: a button for a new one, one at each that there is, the dialog.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { apiPath } from "../api/paths";
import { asDocument, DocumentDialog } from "./document_dialog";

interface Defined {
  name: string;
  definition: Record<string, unknown>;
}

interface Kind {
  /** In the singular, as `compute`; the API has its plural. */
  noun: string;
  about: string;
  /** The document of a new one. */
  first: string;
  /** Whether a new one is begun at once: one has come for it. */
  isBegun?: boolean;
  onDone: () => void;
}

export interface Definer {
  create: JSX.Element;
  edit: (of: Defined) => JSX.Element;
  dialog: JSX.Element | false;
}

export function useDefiner({ noun, about, first, isBegun = false, onDone }: Kind): Definer {
  const [edited, setEdited] = useState<Partial<Defined> | undefined>(isBegun ? {} : undefined);
  const name = edited?.name;
  return {
    create: (
      <button type="button" onClick={() => setEdited({})}>
        New {noun}
      </button>
    ),
    edit: (of) => (
      <button type="button" aria-label={`Edit ${of.name}`} onClick={() => setEdited(of)}>
        Edit
      </button>
    ),
    dialog: edited !== undefined && (
      <DocumentDialog
        title={name ? `Edit ${name}` : `New ${noun}`}
        about={about}
        method="PUT"
        path={(of) => apiPath(`/${noun}s/${encodeURIComponent(of)}`)}
        {...(name ? { name } : {})}
        document={edited.definition ? asDocument(edited.definition) : first}
        button={name ? "Change" : "Create"}
        onDone={() => {
          setEdited(undefined);
          onDone();
        }}
        onClose={() => setEdited(undefined)}
      />
    ),
  };
}
