// A path that leads to nothing.

import type { JSX } from "preact";

export function Lost(): JSX.Element {
  return (
    <div class="page">
      <h1>Nothing here</h1>
      <p>
        No page has this address. <a href="/jobs">All jobs</a> are a good place to go on.
      </p>
    </div>
  );
}
