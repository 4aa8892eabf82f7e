#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Write requirements/*.txt anew from pyproject.toml: pinned, hashed, for every platform. Needs uv (pip install uv).
# The files name no download host, so they work with any mirror. uv.lock would name a host.
set -eu
cd "$(dirname "$0")/.."
lock() {
	name=$1
	shift
	uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --upgrade \
		--custom-compile-command "sh tools/lock.sh" "$@" pyproject.toml -o "requirements/$name.txt"
	sed -i '1i # SPDX-License-Identifier: Apache-2.0' "requirements/$name.txt"
}
lock run --group build
lock cross --group build --extra cross
lock dev --group dev --extra cross --extra labgrid --extra plot --extra parquet
