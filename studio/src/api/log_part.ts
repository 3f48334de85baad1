// A part of a log: which bytes of it are there, as lines that know where they begin.

import { getText, type Problem } from "./http";
import { filePath } from "./paths";

export interface LogLine {
  /** The byte at which it begins: what a link to it names. */
  offset: number;
  text: string;
}

export interface LogPart {
  begin: number;
  end: number;
  /** Of the whole log, when this part was read. */
  size: number;
  lines: LogLine[];
}

/** An empty log has no part that could be asked for. */
export const NOTHING: LogPart = { begin: 0, end: 0, size: 0, lines: [] };

const CHUNK = 64 * 1024;
const MOST_LINES = 20_000;

/** The end of a log, or what is around a byte of it. */
export async function openPart(
  job: string,
  path: string,
  at: number | undefined,
  signal: AbortSignal,
): Promise<LogPart> {
  if (at === undefined) return read(job, path, `bytes=-${CHUNK}`, signal);
  const begin = Math.max(0, at - CHUNK / 4);
  return read(job, path, `bytes=${begin}-${begin + CHUNK - 1}`, signal);
}

/** With what comes after it: the lines that were written meanwhile, or the next ones of a long log. */
export async function readOn(job: string, path: string, part: LogPart, signal: AbortSignal): Promise<LogPart> {
  const last = part.lines.at(-1);
  const begin = last?.offset ?? part.end; // the last line may not have been complete
  const next = await read(job, path, `bytes=${begin}-${begin + CHUNK - 1}`, signal, true);
  if (next.end === part.end) return part.size === next.size ? part : { ...part, size: next.size };
  const lines = [...part.lines.slice(0, last ? -1 : undefined), ...next.lines].slice(-MOST_LINES);
  return { ...next, begin: lines[0]?.offset ?? next.begin, lines };
}

/** With what comes before it. */
export async function readBack(job: string, path: string, part: LogPart, signal: AbortSignal): Promise<LogPart> {
  const begin = Math.max(0, part.begin - CHUNK);
  const before = await read(job, path, `bytes=${begin}-${part.begin - 1}`, signal);
  return { ...before, end: part.end, size: part.size, lines: [...before.lines, ...part.lines] };
}

async function read(job: string, path: string, range: string, signal: AbortSignal, isWhole = false): Promise<LogPart> {
  let answer: Response;
  try {
    answer = await getText(filePath(job, "logs", path), { Range: range }, signal);
  } catch (problem) {
    if ((problem as Problem).status !== 416) throw problem;
    return NOTHING;
  }
  const bytes = new Uint8Array(await answer.arrayBuffer());
  const [, first = "0", , size = String(bytes.length)] =
    /bytes (\d+)-(\d+)\/(\d+)/.exec(answer.headers.get("Content-Range") ?? "") ?? [];
  const begin = Number(first);
  const lines = linesOf(bytes, begin);
  // A part that begins within a line leaves that line out; its beginning is not known.
  if (begin > 0 && !isWhole && lines.length > 1) lines.shift();
  return { begin: lines[0]?.offset ?? begin, end: begin + bytes.length, size: Number(size), lines };
}

export function linesOf(bytes: Uint8Array, begin: number): LogLine[] {
  const decoder = new TextDecoder();
  const lines: LogLine[] = [];
  for (let at = 0; at < bytes.length; ) {
    const end = bytes.indexOf(10, at);
    const stop = end < 0 ? bytes.length : end;
    lines.push({ offset: begin + at, text: decoder.decode(bytes.subarray(at, stop)) });
    at = stop + 1;
  }
  return lines;
}
