"""Writes what is made, or says what is not as it should be."""

from __future__ import annotations

import sys

from deploy.generate import chart


def main(arguments: list[str]) -> int:
    """The exit code."""
    made = chart.files()
    templates = chart.CHART / "templates"
    left = [file for file in templates.glob("*.yaml") if file not in made]
    other = [file for file, text in made.items() if not file.exists() or file.read_text(encoding="utf-8") != text]
    if "--check" in arguments:
        for file in other + left:
            sys.stderr.write(f"{file}: not as it is made; run `./dev run python -m deploy.generate`\n")
        return int(bool(other or left))
    for file in left:
        file.unlink()
    for file in other:
        file.write_text(made[file], encoding="utf-8")
        sys.stdout.write(f"{file}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
