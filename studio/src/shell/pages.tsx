// Which path shows which view.

import type { JSX } from "preact";
import { session } from "../api/session";
import { lazy } from "../parts/lazy";
import { JobPage } from "../views/job/job_page";
import { Jobs } from "../views/jobs/jobs";
import { Lost } from "../views/lost";

const morePages = () => import("../views/more_pages");
const Compare = lazy(async () => (await morePages()).Compare);
const Draft = lazy(async () => (await morePages()).Draft);
const Library = lazy(async () => (await morePages()).Library);
const Nodes = lazy(async () => (await morePages()).Nodes);
const People = lazy(async () => (await morePages()).People);
const Schedules = lazy(async () => (await morePages()).Schedules);

interface Page {
  title: string;
  view: JSX.Element;
}

export function pageOf(path: string): Page {
  const [noun = "", id = "", tab = "", ...more] = path.split("/").filter(Boolean).map(decoded);
  if (more.length === 0) {
    if (!noun || (noun === "jobs" && !id)) return { title: "Jobs", view: <Jobs /> };
    if (noun === "jobs") return { title: `${id}${tab && ` · ${tab}`}`, view: <JobPage key={id} id={id} tab={tab} /> };
    if (noun === "nodes" && !id) return { title: "Nodes", view: <Nodes /> };
    if (noun === "schedules" && !id) return { title: "Schedules", view: <Schedules /> };
    if (noun === "library" && !id) return { title: "Library", view: <Library /> };
    if (noun === "new" && !id) return { title: "New job", view: <Draft /> };
    if (noun === "people" && !id && session.value?.has_people) return { title: "People", view: <People /> };
    if (noun === "compare" && !id) return { title: "Compare jobs", view: <Compare /> };
  }
  return { title: "Nothing here", view: <Lost /> };
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
