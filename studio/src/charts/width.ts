// How wide the place of a drawing is.

import type { RefObject } from "preact";
import { useLayoutEffect, useState } from "preact/hooks";

/** In pixels; 0 before it is known. */
export function useWidth(of: RefObject<HTMLElement | null>): number {
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const own = of.current!;
    const measure = (): void => setWidth(Math.floor(own.clientWidth));
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(own);
    return () => observer.disconnect();
  }, []);
  return width;
}
