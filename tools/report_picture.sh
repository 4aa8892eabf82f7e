#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# usage: report_picture.sh REPORT.html    photographs the top of a report into docs/report.png, for README.md; needs chromium
set -eu
[ "$#" -eq 1 ] || { sed -n 's/^# usage: /usage: /p' "$0" >&2; exit 2; }
report=$(realpath -e -- "$1")
picture=$(realpath -- "$(dirname "$0")/../docs/report.png")
command -v chromium >/dev/null || { echo "chromium is not installed" >&2; exit 2; }
# The sandbox of chromium refuses root; the page is a local file that rtproof wrote.
sandbox=
[ "$(id -u)" -ne 0 ] || sandbox=--no-sandbox
chromium --headless $sandbox --disable-gpu --hide-scrollbars --window-size=960,600 --screenshot="$picture" "file://$report"
