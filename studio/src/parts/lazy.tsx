// A view whose code is loaded when it is first shown, for what few people open: the first look doesn't wait for it.

import type { ComponentType, JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Problem } from "../api/http";
import { Loading, Trouble } from "./notice";

const GONE = new Problem(
  0,
  "no_code",
  "This part of the page can't be loaded: the server is away, or has another release now. Load the page again.",
);

export function lazy<Props extends object>(load: () => Promise<ComponentType<Props>>): ComponentType<Props> {
  let Loaded: ComponentType<Props> | undefined;
  return function Lazy(props: Props): JSX.Element {
    const [View, show] = useState(() => Loaded);
    const [isGone, setGone] = useState(false);
    useEffect(() => {
      if (View) return;
      load().then(
        (view) => {
          Loaded = view;
          show(() => view);
        },
        () => setGone(true),
      );
    }, []);
    if (View) return <View {...props} />;
    return isGone ? <Trouble problem={GONE} /> : <Loading />;
  };
}
