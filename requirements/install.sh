#!/usr/bin/env bash
# Makes an environment of Python, and installs packages into it:
#
#   requirements/install.sh FOLDER ARGUMENTS-OF-PIP-INSTALL...
#
# uv does it, many times faster than pip. ParallelRun ships uv, so the one of .venv is the one that is locked. uv doesn't
# read pip's configuration: on a machine whose packages come from elsewhere by that, pip does what uv can't.
#
# PYTHON  the interpreter (default python3)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
python=${PYTHON:-python3}
folder=$1
shift
uv=.venv/bin/uv
log=$folder/setup.log
export UV_SYSTEM_CERTS=1 UV_PYTHON_DOWNLOADS=never UV_NO_PROGRESS=1

with_pip() {
    "$folder/bin/python" -m pip install --disable-pip-version-check --no-compile "$@"
}

make_environment() {
    [ -x "$folder/bin/python" ] || "$uv" venv --quiet --allow-existing --python "$python" "$folder" 2>/dev/null ||
        "$python" -m venv "$folder"
}

# The interpreter's own pip installs uv: to unpack and compile another one takes as long as all that uv does then.
make_main_environment() {
    "$python" -m venv --without-pip .venv
    [ -x "$uv" ] && return
    sed -n '/^uv==/,/[^\\]$/p' requirements/runtime.txt >.venv/uv.txt
    "$python" -m pip --python .venv/bin/python install --disable-pip-version-check --no-compile \
        --require-hashes -r .venv/uv.txt && return
    echo "the pip of $python could not; one in .venv is asked"
    "$python" -m venv .venv
    with_pip --require-hashes -r .venv/uv.txt || true
}

install() {
    if [ "$folder" = .venv ]; then make_main_environment; else make_environment; fi
    "$uv" pip install --python "$folder/bin/python" "$@" && return
    echo "uv could not; pip is asked"
    "$folder/bin/python" -m pip --version >/dev/null 2>&1 || "$python" -m venv --clear "$folder"
    with_pip "$@"
}

mkdir -p "$folder"
install "$@" >"$log.new" 2>&1 || {
    mv "$log.new" "$log"
    tail -n 30 "$log" >&2
    echo "make: failed; the whole log is in $log" >&2
    exit 1
}
[ ! -e "$log.new" ] || mv "$log.new" "$log"
