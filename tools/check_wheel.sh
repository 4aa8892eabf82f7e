#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# usage: check_wheel.sh [PYTHON...]    installs the wheel of dist/ with pip, pipx and uv for each Python, uses it, and removes it
# ARM64_ROOT names a folder with Debian for arm64 with python3-venv; the wheel is installed and used there, too, under QEMU; without
# a PYTHON only there. debootstrap --foreign makes such a folder, with dpkg-deb -x of all that it fetched, and the certificates in
# /etc/ssl/certs/ca-certificates.crt.
# Needs a network for PyPI. Takes minutes, so that it is no test of the suite.
set -eu
cd "$(dirname "$0")/.."
wheel=$(ls "$PWD"/dist/rtproof-*-py3-none-any.whl)
source=$(ls "$PWD"/dist/rtproof-*.tar.gz)
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
export HOME="$place/home" XDG_CACHE_HOME="$place/home/.cache" PIP_DISABLE_PIP_VERSION_CHECK=1
mkdir -p "$HOME"
[ $# -gt 0 ] || [ -n "${ARM64_ROOT:-}" ] || set -- python3

say() {
	printf '\n== %s\n' "$*"
}

timed() {
	began=$(date +%s)
	echo "\$ $*"
	"$@"
	echo "   ($(($(date +%s) - began)) s)"
}

# usage: use COMMAND_FOLDER    asks the installed rtproof for its version and its programs, measures 1 s, and shows the run
use() {
	rm -rf "$place/runs"
	timed "$1/rtproof" --version
	"$1/rtproof" agent files > "$place/files"
	! grep 'not here' "$place/files"
	wc -l < "$place/files" | sed 's/$/ programs in the package/'
	timed "$1/rtproof" run --duration 1s --allow-unprivileged --quiet --no-report --output "$place/runs/one"
	"$1/rtproof" show "$place/runs/one" | head -n 12
}

# usage: gone FOLDER...    fails if a file of rtproof is left, there or in the home folder; pipx keeps an empty lock of its own
gone() {
	left=$(find "$@" "$HOME" -path "$place/home/.cache/uv" -prune -o -iname '*rtproof*' ! -name .rtproof.lock -print)
	[ -z "$left" ] || { echo "left behind: $left" >&2; exit 1; }
	echo "nothing is left behind"
}

size() {
	for folder in "$@"; do
		du -sh --apparent-size "$folder" | sed 's/^/   /'
	done
}

say "the tools"
python3 -m venv "$place/tools"
"$place/tools/bin/pip" --quiet install pipx uv twine
"$place/tools/bin/twine" check --strict "$wheel" "$source"
export PATH="$place/tools/bin:$PATH"

for python in "$@"; do
	# The whole path, because pipx and uv look for a relative one elsewhere.
	python=$(command -v "$python")
	python=$(cd "$(dirname "$python")" && pwd)/$(basename "$python")
	version=$("$python" -c 'import sys; print("%d.%d.%d" % sys.version_info[:3])')

	say "pip, Python $version"
	"$python" -m venv "$place/venv"
	size "$place/venv"
	timed "$place/venv/bin/pip" --quiet install "$wheel"
	size "$place/venv" "$place"/venv/lib/python*/site-packages/rtproof "$place"/venv/lib/python*/site-packages/numpy*
	use "$place/venv/bin"
	timed "$place/venv/bin/pip" --quiet uninstall --yes rtproof
	gone "$place/venv"
	rm -rf "$place/venv"

	say "pipx, Python $version"
	export PIPX_HOME="$place/pipx" PIPX_BIN_DIR="$place/pipx-bin" PIPX_MAN_DIR="$place/pipx-man"
	timed pipx install --quiet --python "$python" "$wheel"
	size "$place/pipx"
	use "$place/pipx-bin"
	timed pipx uninstall rtproof
	gone "$PIPX_HOME/venvs" "$PIPX_BIN_DIR"

	say "uv tool, Python $version"
	export UV_TOOL_DIR="$place/uv" UV_TOOL_BIN_DIR="$place/uv-bin" UV_CACHE_DIR="$HOME/.cache/uv"
	timed uv tool install --quiet --no-python-downloads --python "$python" "$wheel"
	size "$place/uv"
	use "$place/uv-bin"
	timed uv tool uninstall rtproof
	gone "$UV_TOOL_DIR" "$UV_TOOL_BIN_DIR"
done

[ -n "${ARM64_ROOT:-}" ] || exit 0
say "arm64, under QEMU"
packages=$(mktemp -d "$ARM64_ROOT/tmp/packages-XXXXXX")
trap 'rm -rf "$place" "$packages"' EXIT
there=${packages#"$ARM64_ROOT"}
root() {
	python3 tools/foreign_root.py "$ARM64_ROOT" env -i PATH=/usr/bin:/bin HOME="$there" "$@"
}
python=$(root python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')
"$place/tools/bin/python" -m pip --quiet download --dest "$packages" --only-binary=:all: --python-version "$python" \
	--platform manylinux_2_28_aarch64 --platform manylinux_2_17_aarch64 --platform manylinux2014_aarch64 "$wheel"
ls -l "$packages"
root uname -m
timed root python3 -m venv "$there/venv"
timed root "$there/venv/bin/pip" --quiet install --no-compile --no-index --find-links "$there" rtproof
size "$packages/venv"
timed root "$there/venv/bin/rtproof" --version
root "$there/venv/bin/rtproof" agent path
root "$there/venv/bin/rtproof" agent version
# Inside a user namespace the agent's memory cannot be locked, so that page faults make the run INVALID (3).
root "$there/venv/bin/rtproof" run --duration 2s --policy other --quiet --no-report --output "$there/run" || [ $? -eq 3 ]
root "$there/venv/bin/rtproof" show "$there/run" | head -n 20
timed root "$there/venv/bin/pip" --quiet uninstall --yes rtproof
rm -r "$packages/run"
left=$(find "$packages" -path "$packages/*.whl" -prune -o -iname '*rtproof*' -print)
[ -z "$left" ] || { echo "left behind: $left" >&2; exit 1; }
echo "nothing is left behind"
