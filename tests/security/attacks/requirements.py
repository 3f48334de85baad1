"""Requirements that are something else than the name of a package to whoever installs them."""

from __future__ import annotations

from functools import partial
from typing import Any

from tests.acceptance.http_user import HttpUser, zip_of
from tests.security.attack import Attack, Target

_ENTRY = "def run(mini_batch):\n    return mini_batch\n"
_BEFORE = ("", "\ufeff", "\u200b", "\u00a0", "\u2028", "\x1c", "\x85", "\v", "x\n", "x\r", "x\u2028", "x \\\n")
"""What `str.strip`, a regular expression and an installer see differently."""
_LOCAL = (
    "{home}", "{home}/secret", "file://{home}", "file:{home}", "./folder", "x @ file://{home}", "x @ {home}",
    "x[y]@{home}/a.whl", "x===file:{home}", "x @ FILE:///{home}", "${{HOME}}/x",
    "x @ https://h/${{HOME}}#sha256={hash}",
)  # fmt: skip
_OTHER_FILES = ("-r {home}", "-c {home}", "-e {home}", "--requirement={home}", "--constraint={home}", "-r{home}",
                "--editable {home}", "x --config-settings={home}", "x --global-option=x", "--find-links {home}",
                "--index-url file://{home}", "-f {home}", "--index-url http://10.0.0.1/simple")  # fmt: skip
_URLS = ("x @ git+ssh://h/x", "git+file://{home}", "x @ git+https://h/x", "x @ git+https://h/x@main", "hg+https://h/x@1",
         "x @ git+https://h/x?y=@{commit}", "x @ http://h/x-1-py3-none-any.whl#sha256={hash}", "x @ https://h/x-1-py3-none-any.whl",
         "x @ git+https://h/x@{commit}#subdirectory=../../y", "x @ https://u:p@h/x.whl#sha256={hash}")  # fmt: skip

_SECRET = "UV_INDEX_INNER_PASSWORD"
_VARIABLES = tuple(
    text
    for name in (f"${{{{{_SECRET}}}}}", f"${_SECRET}", "`env`")
    for text in (
        f"x=={name}", f"x[{name}]", f"x ; platform_version == '{name}'", f"x @ https://h/{name}/x-1.tar.gz#sha256={{hash}}",
        f"x @ https://{name}@h/x-1.tar.gz#sha256={{hash}}", f"x @ git+https://h/{name}@{{commit}}",
        f"x @ git+https://h/x@{{commit}}#subdirectory={name}", f"x --hash=sha256:{name}", f"{name}",
        f"--index-url https://{name}@h/simple", f"-i https://h/{name}", f"--extra-index-url https://h/?x={name}",
        f"-f https://h/{name}", f"--find-links=https://{name}/",
    )
)  # fmt: skip
_FIELDS = ("index_url", "extra_index_urls", "find_links")


def _ways_in(line: str) -> list[dict[str, Any]]:
    """Where a job names requirements."""
    fields = [
        {"pip": ["six"], field: value if field == "index_url" else [value]}
        for value in [line.rpartition(" ")[2].removeprefix("--find-links=")]
        for field in _FIELDS
        if value.startswith("http") and not {"$", "`"}.isdisjoint(value)
    ]
    return [
        *fields,
        {"pip": [line]},
        {"conda_file": {"dependencies": [{"pip": [line]}]}},
        {"pip": ["six", line, "six"]},
    ]


def accepted(lines: tuple[str, ...], target: Target, before: tuple[str, ...] = _BEFORE) -> str:
    """Submit a job for each, with each of these before it; returns those that were taken."""
    taken = []
    values = {"home": target.root, "hash": "0" * 64, "commit": "0" * 40}
    with HttpUser(target.url, target.token) as user:
        for text in (each + line.format(**values) for line in lines for each in before):
            for environment in _ways_in(text):
                spec = {"entry_script": "entry.py", "inputs": {"data": f"{target.inputs_there}/one"}}
                answer = user.post({**spec, "environment": environment}, zip_of({"entry.py": _ENTRY}))
                if answer.status_code == 202:
                    user.client.post(f"/v1/jobs/{answer.json()['id']}:cancel")
                    taken.append(repr(text))
                elif answer.status_code != 422:
                    taken.append(f"{text!r}: {answer.status_code}")
    return f"taken: {', '.join(taken[:10])}" if taken else ""


ATTACKS: list[Attack] = [
    Attack("a folder or a file of the node as a requirement", partial(accepted, _LOCAL)),
    Attack("requirements that lead to other files", partial(accepted, _OTHER_FILES)),
    Attack("packages of URLs that anybody can change", partial(accepted, _URLS)),
    Attack(
        "requirements and indexes that name a variable of the node", partial(accepted, _VARIABLES, before=_BEFORE[:2])
    ),
]
