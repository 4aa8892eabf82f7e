# SPDX-License-Identifier: Apache-2.0
"""usage: live_view_picture.py [SECONDS]    photographs the live view of a real run into docs/live-view.png

Runs ``rtproof run`` in tmux, in a terminal of 80 columns, and takes its screen with its colours after SECONDS (by
default 110). Needs tmux and chromium. The run's folder is removed.
"""

import html
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).parent.parent
PICTURE = ROOT / "docs" / "live-view.png"
COLUMNS, ROWS = 80, 14
SCALE = 1.5
COLOURS_OF_PICTURE = 32
COMMAND = "rtproof run --until-decided --limit 100ms --at-most 1/min --load sched"
SGR = re.compile(r"\x1b\[([0-9;]*)m")
"""Codes that change the look of what follows (ECMA-48, "select graphic rendition"). tmux prints no others."""
COLOURS = {"31": "#ff7b72", "32": "#56d364", "33": "#e3b341"}
PAGE = """<!doctype html><meta charset="utf-8"><style>
body {{ margin: 0; background: #0d1117; color: #e6edf3; }}
pre {{ margin: 0; padding: 10px 14px; font: 14px/1.35 "DejaVu Sans Mono", monospace; }}
</style><pre>{screen}</pre>
"""


def html_of_screen(screen: str) -> str:
    """What tmux captured of a terminal, as HTML that keeps the colours and the bold words."""
    parts, bold, colour = [], "", ""
    for at, part in enumerate(SGR.split(screen)):
        if at % 2:
            bold, colour = _look(part.split(";"), bold, colour)
        else:
            style = f' style="{bold}{colour}"' if bold or colour else ""
            parts.append(f"<span{style}>{html.escape(part)}</span>" if style and part else html.escape(part))
    return "".join(parts)


def _look(codes: list[str], bold: str, colour: str) -> tuple[str, str]:
    """The style sheet's words for bold and for the colour, after these codes."""
    for code in codes:
        if code in ("", "0"):
            bold, colour = "", ""
        elif code == "1":
            bold = "font-weight:bold;"
        elif code == "39":
            colour = ""
        elif code in COLOURS:
            colour = f"color:{COLOURS[code]};"
    return bold, colour


def captured(seconds: float, folder: Path) -> str:
    """The screen of a terminal in which the run has gone on for this long. The run and the terminal are ended."""
    tmux = ("tmux", "-L", f"rtproof-picture-{os.getpid()}", "-f", "/dev/null")
    script = f"""PATH={ROOT}/.venv/bin:$PATH; cd {folder}; printf '$ %s\\n' '{COMMAND}'; exec {COMMAND}"""
    size = ("-x", str(COLUMNS), "-y", str(ROWS))
    subprocess.run((*tmux, "new-session", "-d", "-s", "run", *size, "sh", "-c", script), check=True)
    try:
        time.sleep(seconds)
        shot = subprocess.run((*tmux, "capture-pane", "-e", "-p", "-t", "run"), check=True, capture_output=True)
        subprocess.run((*tmux, "send-keys", "-t", "run", "C-c"), check=True)
        time.sleep(3)
    finally:
        subprocess.run((*tmux, "kill-server"), check=False)
    return shot.stdout.decode().rstrip()


def main(seconds: float) -> None:
    missing = [name for name in ("tmux", "chromium") if not shutil.which(name)]
    if missing:
        sys.exit(f"{' and '.join(missing)} not installed")
    with tempfile.TemporaryDirectory() as folder:
        screen = captured(seconds, Path(folder))
        page = Path(folder) / "screen.html"
        page.write_text(PAGE.format(screen=html_of_screen(screen)), encoding="utf-8")
        width = round(COLUMNS * 8.43 + 28)
        height = round((screen.count("\n") + 1) * 18.9 + 20)
        # The sandbox of chromium refuses root; the page is a local file that this program wrote.
        root = ("--no-sandbox",) * (os.geteuid() == 0)
        look = ("--disable-gpu", "--hide-scrollbars", f"--force-device-scale-factor={SCALE}")
        where = (f"--window-size={width},{height}", f"--screenshot={PICTURE}", page.as_uri())
        subprocess.run(("chromium", "--headless", *root, *look, *where), check=True, capture_output=True)
    with Image.open(PICTURE) as image:
        image.convert("RGB").quantize(COLOURS_OF_PICTURE).save(PICTURE, optimize=True)
    print(f"{PICTURE}: {PICTURE.stat().st_size:,} bytes")


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 110.0)
