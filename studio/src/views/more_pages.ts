// Pages that are opened less often, in a file of their own: see `parts/lazy.tsx`.

export { Compare } from "./compare/compare";
export { Draft } from "./draft/draft";
export { Library } from "./library/library";
export { Nodes } from "./nodes";
export { People } from "./people/people";
export { Schedules } from "./schedules";
