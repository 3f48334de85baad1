// The folder of a job's code, sent from this browser: what the document names as `code` then.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { Problem } from "../../api/http";
import { sendCode } from "../../api/uploads";
import { Trouble } from "../../parts/notice";
import { bytes, counted } from "../../words/numbers";

const MOST_BYTES = 20 * 2 ** 20;
const LEFT_OUT = /(^|\/)(\.git|__pycache__|node_modules|\.venv)(\/|$)/;

export function CodeFolder({ onSent }: { onSent: (code: string) => void }): JSX.Element {
  const [told, tell] = useState("");
  const [problem, refuse] = useState<Problem | undefined>(undefined);
  const send = async (chosen: FileList): Promise<void> => {
    refuse(undefined);
    const files = [...chosen].map((file) => ({ file, name: pathOf(file) })).filter(({ name }) => !LEFT_OUT.test(name));
    const size = files.reduce((sum, { file }) => sum + file.size, 0);
    if (size > MOST_BYTES) {
      tell(`${bytes(size)} are too much to be sent from a page: parallelrun job create sends more.`);
      return;
    }
    tell("Sending …");
    try {
      onSent(
        await sendCode(
          await Promise.all(
            files.map(async ({ file, name }) => ({ name, content: new Uint8Array(await file.arrayBuffer()) })),
          ),
        ),
      );
      tell(`${counted(files.length, "file")} sent, ${bytes(size)}. The document names them as its code.`);
    } catch (error) {
      tell("");
      refuse(error as Problem);
    }
  };
  return (
    <div class="code-folder">
      <label>
        Code from this machine
        <input
          type="file"
          multiple
          {...{ webkitdirectory: true }}
          onChange={(event) => event.currentTarget.files?.length && void send(event.currentTarget.files)}
        />
      </label>
      <p class="sub" role="status">
        {told || "A small folder with the entry script. It is kept by the server, and named in the document."}
      </p>
      {problem && <Trouble problem={problem} />}
    </div>
  );
}

/** Its path below the folder that was chosen. */
const pathOf = ({ webkitRelativePath, name }: File): string =>
  webkitRelativePath ? webkitRelativePath.split("/").slice(1).join("/") : name;
