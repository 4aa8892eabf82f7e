#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# usage: kernels.sh NAME...    fetches kernels of 'rtproof lab kernels' into the cache, and names those that it cannot fetch
cd "$(dirname "$0")/.." || exit
for name in "$@"; do
	.venv/bin/python -m rtproof lab kernels fetch "$name" >/dev/null ||
		echo "without $name what boots it is skipped" >&2
done
