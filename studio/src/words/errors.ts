// What has gone wrong with a try, in a few words: the server names it by a code, for programs.

import type { JobFailure } from "../api/types";
import { worded } from "./states";

const WORDS: Record<string, string> = {
  RUN_EXCEPTION: "run() raised",
  RUN_TIMEOUT: "run() took too long",
  BAD_RETURN: "run() returned no list of rows",
  SIGNAL: "the worker was killed",
  OOM_KILLED: "the memory ran out",
  GPU_OUT_OF_MEMORY: "the memory of the GPU ran out",
  EXITED: "the worker exited",
  INIT_EXCEPTION: "init() raised",
  INIT_DIED: "the worker ended in init()",
  INIT_TIMEOUT: "init() took too long",
  ENVIRONMENT_FAILED: "the environment can't be built",
  CODE_DAMAGED: "the stored code is damaged",
  LOAD_TIMEOUT: "loading the data took too long",
  NODE_LOST: "the node was lost",
  INPUT_UNREADABLE: "the input can't be read",
  INPUT_CHANGED: "the input has changed",
  OUTPUT_UNWRITABLE: "the output can't be written",
  WORKER_BROKEN: "the script gave up its worker",
};

export const causeOf = (category: string): string => WORDS[category] ?? worded(category.toLowerCase());

/** The first cause of a failure, without the code with which it begins. */
export const firstCauseOf = ({ error_category: code, first_cause }: JobFailure): string =>
  code && first_cause.startsWith(`${code}: `) ? first_cause.slice(code.length + 2) : first_cause;
