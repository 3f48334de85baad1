// The token, asked for over whatever is shown: the page beneath goes on from where it was.

import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Problem } from "../api/http";
import { isLinkUsed, session, signIn } from "../api/session";
import { Command } from "../parts/command";
import { Prose } from "../parts/prose";
import { place } from "../shell/router";

const HELP =
  "On the server's machine, `parallelrun job open ID` and `parallelrun up` sign you in by a link. The token of `parallelrun up` is in `~/.local/state/parallelrun/cluster.json`.";

/** The command that prints a link to where the page is: of a job that it shows, to that one. */
const linkCommand = (path: string): string => {
  const id = /^\/jobs\/(job_\w+)/.exec(path)?.[1];
  return id ? `parallelrun job open ${id}` : "parallelrun up";
};

export function SignIn(): JSX.Element {
  const own = useRef<HTMLDialogElement>(null);
  const wasSignedIn = session.value?.is_signed_in ?? false;
  const [trouble, tell] = useState("");
  const [isBusy, setBusy] = useState(false);
  useEffect(() => own.current?.showModal(), []);

  const submit = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    const form = event.currentTarget as HTMLFormElement;
    setBusy(true);
    tell("");
    const token = new FormData(form).get("token") as string;
    await signIn(token.trim()).catch((problem: Problem) =>
      tell(problem.status === 401 ? "This token is not valid." : problem.message),
    );
    setBusy(false);
  };

  return (
    <dialog ref={own} class="sign-in" aria-labelledby="sign-in-title" onCancel={(event) => event.preventDefault()}>
      <form method="post" class="sheet" onSubmit={(event) => void submit(event)}>
        <svg class="logo" viewBox="0 0 32 32" aria-hidden="true">
          <rect width="32" height="32" rx="8" />
          <path d="M7.500 9h12M7.500 16h17M7.500 23h8.500" />
        </svg>
        <h1 id="sign-in-title">Sign in to ParallelRun</h1>
        {isLinkUsed.value && (
          <div class="notice" role="status">
            <div>
              <p>This link was used already, or is older than ten minutes: each signs in one browser, once.</p>
              <p>To get another one:</p>
              <Command text={linkCommand(place.value.path)} />
            </div>
          </div>
        )}
        {wasSignedIn && (
          <p class="notice" role="status">
            Your session has ended: it lasts for twelve hours, also over restarts of the server, and ends when you sign
            out or its token is taken back.
          </p>
        )}
        <label for="token">Token</label>
        <input
          id="token"
          name="token"
          type="password"
          autocomplete="current-password"
          required
          autofocus
          aria-describedby="token-help token-trouble"
          aria-invalid={trouble !== ""}
        />
        <p id="token-trouble" class="trouble" role="alert">
          <Prose text={trouble} />
        </p>
        <button type="submit" class="main" disabled={isBusy}>
          {isBusy ? "Signing in …" : "Sign in"}
        </button>
        <p id="token-help" class="hint">
          <Prose text={HELP} />
        </p>
      </form>
    </dialog>
  );
}
