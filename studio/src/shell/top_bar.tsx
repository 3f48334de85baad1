// The bar at the top: where one can go, and whether the server is there.

import type { JSX } from "preact";
import { answered, isReachable } from "../api/http";
import { session, signOut } from "../api/session";
import { Icon, type IconName } from "../parts/icon";
import { isHelpOpen } from "./keys";
import { place } from "./router";
import { clock, switchZone, zone, zoneName } from "../words/times";
import { nextTheme, theme } from "./theme";

const NOUNS = [
  { path: "/jobs", title: "Jobs" },
  { path: "/schedules", title: "Schedules" },
  { path: "/library", title: "Library" },
  { path: "/nodes", title: "Nodes" },
];
/** For clusters that several people share. */
const SHARED = { path: "/people", title: "People" };
const THEME_ICONS: Record<string, IconName> = { system: "system", light: "sun", dark: "moon" };

export function TopBar(): JSX.Element {
  const { path } = place.value;
  return (
    <header class="top">
      <a class="brand" href="/jobs" aria-label="ParallelRun: all jobs">
        <svg viewBox="0 0 32 32" aria-hidden="true">
          <rect width="32" height="32" rx="8" />
          <path d="M7.500 9h12M7.500 16h17M7.500 23h8.500" />
        </svg>
        <span>ParallelRun</span>
      </a>
      <nav aria-label="Pages">
        {(session.value?.has_people ? [...NOUNS, SHARED] : NOUNS).map((noun) => (
          <a key={noun.path} href={noun.path} aria-current={isAt(path, noun.path) ? "page" : undefined}>
            {noun.title}
          </a>
        ))}
      </nav>
      <div class="tools">
        {!isReachable.value && (
          <span class="chip failed" role="status">
            <Icon name="warning" />
            no connection: as of {clock(answered.at)}
          </span>
        )}
        <button
          type="button"
          class="bare zone"
          onClick={switchZone}
          aria-label={`Times are ${zone.value === "UTC" ? "in UTC" : `local (${zoneName()})`}. Change`}
          title={`Times are ${zone.value === "UTC" ? "in UTC" : "local"}; logs are in UTC`}
        >
          {zone.value === "UTC" ? "UTC" : "local"}
        </button>
        <button
          type="button"
          class="bare"
          onClick={nextTheme}
          aria-label={`Colors: ${theme.value}. Change`}
          title={`Colors: ${theme.value}`}
        >
          <Icon name={THEME_ICONS[theme.value]!} />
        </button>
        <button type="button" class="bare" onClick={() => (isHelpOpen.value = true)} aria-label="Keys" title="Keys (?)">
          <Icon name="help" />
        </button>
        {session.value?.is_token_needed && (
          <button
            type="button"
            class="bare"
            onClick={() => void signOut()}
            aria-label="Sign out"
            title={`Sign out${session.value.token_name && ` (${session.value.token_name})`}`}
          >
            <Icon name="leave" />
          </button>
        )}
      </div>
    </header>
  );
}

const isAt = (path: string, noun: string): boolean =>
  path === noun || path.startsWith(`${noun}/`) || (path === "/" && noun === "/jobs");
