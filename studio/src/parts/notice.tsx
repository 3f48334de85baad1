// What stands where something else should: nothing to show yet, or why there is nothing.

import type { ComponentChildren, JSX } from "preact";
import type { Problem } from "../api/http";
import { Icon } from "./icon";
import { Prose } from "./prose";

export function Empty({ children }: { children: ComponentChildren }): JSX.Element {
  return <p class="empty">{children}</p>;
}

export function Loading(): JSX.Element {
  return (
    <p class="empty loading" role="status">
      Loading …
    </p>
  );
}

export function Trouble({ problem }: { problem: Problem }): JSX.Element {
  return (
    <div class="notice failed" role="alert">
      <Icon name="warning" />
      <div>
        <p>
          <Prose text={problem.message} />
        </p>
        {problem.hints.length > 0 && (
          <ul class="evidence">
            {problem.hints.map((hint) => (
              <li key={hint}>
                <Prose text={hint} />
              </li>
            ))}
          </ul>
        )}
      </div>
    </div>
  );
}

/** What was loaded, or why it wasn't. What there is already stays while the server is away. */
export function Shown<T>({
  of,
  children,
}: {
  of: { value: T | undefined; problem: Problem | undefined };
  children: (value: T) => ComponentChildren;
}): JSX.Element {
  if (of.value !== undefined) return <>{children(of.value)}</>;
  if (of.problem && of.problem.status !== 401) return <Trouble problem={of.problem} />;
  return <Loading />;
}
