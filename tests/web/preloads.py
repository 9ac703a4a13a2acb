"""Writes the list of modules into the page, so that a browser asks for all of them at once.

Run it after adding or renaming one: `python -m tests.web.preloads`.
"""

import re
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "web_demo"
LIST = re.compile(r"( *<link rel=\"modulepreload\"[^>]*>\n)*(?= *<script type=\"module\")")


def main() -> None:
    modules = sorted(path.relative_to(FOLDER).as_posix() for path in FOLDER.rglob("*.js"))
    lines = [
        f'    <link rel="modulepreload" href="{name}">\n' for name in modules if name != "main.js"
    ]
    front = FOLDER / "index.html"
    front.write_text(LIST.sub("".join(lines), front.read_text(), count=1))


if __name__ == "__main__":
    main()
