// A canvas as wide as its place, sharp on every screen, drawn anew when what it shows or the colors change.

import type { RefObject } from "preact";
import { useLayoutEffect } from "preact/hooks";
import { paint } from "../shell/theme";
import { colors, type Colors } from "./colors";

export type Draw = (context: CanvasRenderingContext2D, colors: Colors) => void;

export function useCanvas(
  of: RefObject<HTMLCanvasElement | null>,
  width: number,
  height: number,
  draw: Draw,
  inputs: unknown[],
): void {
  const painted = paint.value;
  useLayoutEffect(() => {
    const canvas = of.current;
    if (!canvas || width <= 0) return;
    const scale = devicePixelRatio || 1;
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
    const context = canvas.getContext("2d")!;
    context.scale(scale, scale);
    draw(context, colors.value);
  }, [width, height, painted, ...inputs]);
}
