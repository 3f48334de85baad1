// A zip of some files, not compressed: what the server takes as code or data.

export interface ZippedFile {
  /** Its path in the zip, with `/` between folders. */
  name: string;
  content: Uint8Array<ArrayBuffer>;
}

const LOCAL = 0x04034b50;
const CENTRAL = 0x02014b50;
const END = 0x06054b50;
const VERSION = 20;
/** Names are in UTF-8. */
const FLAGS = 0x0800;
/** 1 January 1980: equal files make equal zips. */
const DATE = 0x0021;

const TABLE = Uint32Array.from({ length: 256 }, (_, index) => {
  let value = index;
  for (let bit = 0; bit < 8; bit++) value = value & 1 ? 0xedb88320 ^ (value >>> 1) : value >>> 1;
  return value;
});

export function crc32(content: Uint8Array): number {
  let value = 0xffffffff;
  for (const byte of content) value = TABLE[(value ^ byte) & 0xff]! ^ (value >>> 8);
  return (value ^ 0xffffffff) >>> 0;
}

export function zipOf(files: ZippedFile[]): Blob {
  const parts: BlobPart[] = [];
  const directory: BlobPart[] = [];
  let at = 0;
  let directoryBytes = 0;
  for (const { name, content } of files) {
    const encoded = new TextEncoder().encode(name);
    const common = [VERSION, FLAGS, 0, 0, DATE];
    const sizes = [crc32(content), content.length, content.length];
    const local = fields([4, LOCAL], ...two(common), ...four(sizes), ...two([encoded.length, 0]));
    const central = fields(
      [4, CENTRAL],
      [2, VERSION],
      ...two(common),
      ...four(sizes),
      ...two([encoded.length, 0, 0, 0, 0]),
      ...four([0, at]),
    );
    parts.push(local, encoded, content);
    directory.push(central, encoded);
    at += local.length + encoded.length + content.length;
    directoryBytes += central.length + encoded.length;
  }
  const end = fields([4, END], ...two([0, 0, files.length, files.length]), ...four([directoryBytes, at]), [2, 0]);
  return new Blob([...parts, ...directory, end], { type: "application/zip" });
}

type Field = [bytes: 2 | 4, value: number];

const two = (values: number[]): Field[] => values.map((value) => [2, value]);
const four = (values: number[]): Field[] => values.map((value) => [4, value]);

function fields(...all: Field[]): Uint8Array<ArrayBuffer> {
  const view = new DataView(new ArrayBuffer(all.reduce((sum, [bytes]) => sum + bytes, 0)));
  let at = 0;
  for (const [bytes, value] of all) {
    if (bytes === 2) view.setUint16(at, value, true);
    else view.setUint32(at, value, true);
    at += bytes;
  }
  return new Uint8Array(view.buffer);
}
