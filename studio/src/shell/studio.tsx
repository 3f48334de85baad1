// The frame of every page: the bar at the top, what the URL asks for, and the sign-in over it when it is needed.

import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { mustSignIn } from "../api/http";
import { followSession, linkTrouble } from "../api/session";
import { Icon } from "../parts/icon";
import { Prose } from "../parts/prose";
import { SignIn } from "../views/sign_in";
import { Help } from "./help";
import { isHelpOpen } from "./keys";
import { pageOf } from "./pages";
import { place } from "./router";
import { StatusLine } from "./status_line";
import { TopBar } from "./top_bar";

export function Studio(): JSX.Element {
  const { path } = place.value;
  const { title, view } = pageOf(path);
  const main = useRef<HTMLElement>(null);
  const isFirst = useRef(true);

  useEffect(() => {
    document.title = `${title} · ParallelRun`;
  }, [title]);
  useEffect(followSession, []);
  // Who doesn't see the page hears that it is another one, and goes on from its beginning.
  useEffect(() => {
    if (!isFirst.current) main.current?.focus({ preventScroll: true });
    isFirst.current = false;
  }, [path]);

  return (
    <>
      <a class="skip" href="#main" onClick={() => main.current?.focus()}>
        Skip to the content
      </a>
      <TopBar />
      <main id="main" ref={main} tabIndex={-1} aria-label={title}>
        {linkTrouble.value && !mustSignIn.value && (
          <div class="notice failed" role="alert">
            <Icon name="warning" />
            <p>
              <Prose text={linkTrouble.value} />
            </p>
          </div>
        )}
        {view}
      </main>
      <StatusLine />
      {mustSignIn.value && <SignIn />}
      {isHelpOpen.value && <Help />}
    </>
  );
}
