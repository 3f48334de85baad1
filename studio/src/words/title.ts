// What a job is called: by its name, or by what tells it from others that were given none.

import type { Job } from "../api/types";

type Named = Pick<Job, "id" | "name"> & Partial<Pick<Job, "parent" | "spec">> & { script?: string };

/** The name of a job that was given none. */
const NONE = "job";
const SHORT = 6;

export function titleOf({ id, name, parent, spec, script = "" }: Named): string {
  if (name && name !== NONE) return name;
  if (parent) return parent.step;
  const path = spec?.["entry_script"] ?? script;
  const file = typeof path === "string" ? path.split("/").pop() : "";
  return `${file || NONE} ${id.slice(-SHORT)}`;
}
