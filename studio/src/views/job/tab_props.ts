// What each tab of a job is given.

import type { LiveJob } from "../../api/live";
import type { Job } from "../../api/types";

export interface TabProps {
  job: Job;
  live: LiveJob;
  now: number;
}
