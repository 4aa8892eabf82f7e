#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# usage: copy_source.sh FOLDER    copies this checkout to a new folder, without what was built or measured in it
set -eu
cd "$(dirname "$0")/.."
mkdir -p "$1"
tar --create --exclude-vcs --exclude=./.venv --exclude=./build --exclude=./dist --exclude=./runs --exclude=./docs/reference/generated \
	--exclude=__pycache__ --exclude=./.hypothesis --exclude='./.*_cache' . | tar --extract --directory="$1"
