#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# usage: venv.sh run|cross|dev    makes .venv and installs requirements/NAME.txt and this checkout (editable) into it
# PYTHON names the interpreter; otherwise the first Python >= 3.11 in PATH is taken. Does nothing if nothing has changed.
set -eu
cd "$(dirname "$0")/.."
wanted=requirements/$1.txt
stamp=.venv/$1.stamp

new_enough() {
	"$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null
}

find_python() {
	for python in ${PYTHON:-python3 python3.14 python3.13 python3.12 python3.11}; do
		if new_enough "$python"; then
			echo "$python"
			return
		fi
	done
	echo "rtproof needs Python 3.11 or newer; name it with 'make PYTHON=/path/to/python ...' (Debian: apt-get install python3-venv)" >&2
	exit 2
}

make_venv() {
	python=$(find_python)
	if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
		version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
		sh tools/apt.sh "python$version-venv" 2>/dev/null
		"$python" -c 'import ensurepip, venv' 2>/dev/null || {
			echo "$python has no venv module; install it (Debian: apt-get install python$version-venv)" >&2
			exit 2
		}
	fi
	"$python" -m venv --clear .venv
}

if [ "$stamp" -nt "$wanted" ] && [ "$stamp" -nt pyproject.toml ]; then
	exit 0
fi
echo "installing $wanted into .venv"
new_enough .venv/bin/python || make_venv
pip=".venv/bin/python -m pip --quiet --disable-pip-version-check"
# Python compiles what it imports. Compiling all of the packages took two thirds of the time.
$pip install --no-compile --require-hashes -r "$wanted"
$pip install --no-deps --no-build-isolation --editable .
touch "$stamp"
