"""Packages that try to have code of theirs run by whoever installs them, for a folder that stands for an index.

Each piece of such code writes who ran it, and how, into a folder that everybody can write to. The worker of a job is
the one process that may run it.
"""

from __future__ import annotations

import io
import sysconfig
import tarfile
import zipfile
from pathlib import Path

_PAYLOAD = """
import os
def _tell():
    command = open("/proc/self/cmdline").read().replace("\\0", " ")
    if "parallelrun_worker" in command:
        return
    got = []
    for path in {secrets!r}:
        for flags in (os.O_RDONLY, os.O_WRONLY):
            try:
                os.close(os.open(path, flags))
                got.append(path)
            except OSError:
                pass
    got += [name for name, value in os.environ.items() if name.startswith("PARALLELRUN_") or "canary" in value]
    with open(f"{drop}/{name}-{{os.getpid()}}", "w") as file:
        file.write(f"{{os.getuid()}}|{{','.join(got)}}|{{command}}")
try:
    _tell()
except Exception:
    pass
"""
_SHELL = """#!/bin/sh
case "$*" in *parallelrun_worker*) ;; *) echo "$(id -u)||$0 $*" >"{drop}/{name}-$$" ;; esac
exit 1
"""
_BACKEND = """
import os, zipfile
{payload}
def build_wheel(folder, config_settings=None, metadata_directory=None):
    name = "{module}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(os.path.join(folder, name), "w") as archive:
        archive.writestr("{module}.py", "")
        info = "{module}-1.0.dist-info"
        archive.writestr(f"{{info}}/METADATA", "Metadata-Version: 2.1\\nName: {module}\\nVersion: 1.0\\n")
        archive.writestr(f"{{info}}/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        archive.writestr(f"{{info}}/RECORD", "")
    return name
"""
WHEELS = ("pyvenv", "pth", "sitecustomize", "interpreter", "programs", "marked", "entry_points", "outside", "links")
SOURCE = "sourced"


def offer(folder: Path, drop: Path, secrets: tuple[str, ...] = ()) -> None:
    """Fill a folder with these packages, `hostile-NAME` for each of `WHEELS` and for `SOURCE`.

    Args:
        drop: a folder that everybody can write to; a file in it for each process that has run their code.
        secrets: paths of files that only the agent may read or write.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name in WHEELS:
        _wheel(folder, name, _files(name, drop, secrets))
    module = f"hostile_{SOURCE}"
    project = f"[project]\nname = 'hostile-{SOURCE}'\nversion = '1.0'\n"
    backend = "[build-system]\nrequires = []\nbuild-backend = 'backend'\nbackend-path = ['.']\n"
    payload = _PAYLOAD.format(secrets=secrets, drop=drop, name=SOURCE)
    files = {
        "pyproject.toml": project + backend,
        "backend.py": _BACKEND.format(payload=payload, module=module),
        "PKG-INFO": f"Metadata-Version: 2.1\nName: hostile-{SOURCE}\nVersion: 1.0\n",
    }
    with tarfile.open(folder / f"{module}-1.0.tar.gz", "w:gz") as archive:
        for name, text in files.items():
            info = tarfile.TarInfo(f"{module}-1.0/{name}")
            info.size = len(text)
            archive.addfile(info, io.BytesIO(text.encode()))


def _files(name: str, drop: Path, secrets: tuple[str, ...]) -> dict[str, str]:
    payload = _PAYLOAD.format(secrets=secrets, drop=drop, name=name)
    shell = _SHELL.format(drop=drop, name=name)
    data = f"hostile_{name}-1.0.data"
    if name == "pyvenv":
        # Whatever starts with this file finds its standard library in the folder of whoever wrote it.
        library, real = drop.parent / "library", Path(sysconfig.get_path("stdlib"))
        copy = library / "lib" / real.name
        copy.mkdir(parents=True, exist_ok=True)
        for each in real.iterdir():
            if each.name not in ("compileall.py", "__pycache__"):
                (copy / each.name).symlink_to(each)
        (copy / "compileall.py").write_text(payload)
        return {f"{data}/data/pyvenv.cfg": f"home = {library}/bin\ninclude-system-site-packages = true\n"}
    if name == "pth":
        return {"hostile_pth.pth": f"import os; exec({payload!r})\n"}
    if name == "sitecustomize":
        return {f"{module}.py": payload for module in ("sitecustomize", "usercustomize", "compileall")}
    if name in _SCRIPTS:
        return {f"{data}/{path}": shell for path in _SCRIPTS[name]}
    if name in ("entry_points", "outside", "links"):
        return _escaping(name, payload, drop)
    # With a module of that name no worker can be linked into the environment, so it is never complete.
    return {f"{data}/data/ready": "", f"{data}/data/.ready": "", "parallelrun_worker/__init__.py": payload}


def _escaping(name: str, payload: str, drop: Path) -> dict[str, str]:
    data = f"hostile_{name}-1.0.data"
    if name == "entry_points":
        names = ("uv", "git", "pip", "sh")  # `python` is refused
        scripts = "\n".join(f"{each} = hostile_{name}:run" for each in names)
        own = {f"hostile_{name}.py": f"{payload}\ndef run():\n    _tell()\n"}
        return {f"hostile_{name}-1.0.dist-info/entry_points.txt": f"[console_scripts]\n{scripts}\n", **own}
    if name == "outside":
        # What comes to lie in the folder that everybody can write to is taken for what has run.
        up, told = "../" * 30, f"{drop}/{name}-"
        return {
            f"{up}{told}1".replace("//", "/"): "0||by its name", f"{data}/data/{up}{told}2": "0||by its name in .data",
            f"{data}/purelib/{up}{told}3": "0||by its name in purelib", f"{told}4": "0||by a name from the root",
            f"{data}/scripts/{up}{told}5": "0||by its name in scripts", f"{data}/{up}{told}6": "0||by a name of none",
            f"..\\..\\{told}7": "0||by a name with backslashes",
        }  # fmt: skip
    # Of a zip, these are links where whoever unpacks it makes such.
    return {
        f"{_LINK}hostile_{name}_up": str(drop), f"hostile_{name}_up/{name}-1": "0||through a link",
        f"{_LINK}{data}/data/lib64": str(drop), f"{data}/data/lib64/{name}-2": "0||through a link in .data",
    }  # fmt: skip


_LINK = "link: "
_SCRIPTS = {
    "interpreter": ("data/bin/python", "data/bin/python3"),
    "programs": ("scripts/uv", "scripts/git", "scripts/pip", "scripts/sh"),
}


def _wheel(folder: Path, name: str, files: dict[str, str]) -> None:
    info = f"hostile_{name}-1.0.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: hostile-{name}\nVersion: 1.0\n"
    with zipfile.ZipFile(folder / f"hostile_{name}-1.0-py3-none-any.whl", "w") as archive:
        for path, text in {f"hostile_{name}.py": "", **files}.items():
            member = zipfile.ZipInfo(path.removeprefix(_LINK))
            member.external_attr = (0o120777 if path.startswith(_LINK) else 0o100755) << 16
            archive.writestr(member, text)
        archive.writestr(f"{info}/METADATA", metadata)
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
