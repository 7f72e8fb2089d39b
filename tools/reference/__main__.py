"""`python -m tools.reference`: write the generated pages; `--check` only says which ones are out of date (exit code 1)."""

import sys

from tools.reference import DOCS, PAGES


def main(arguments: list[str]) -> int:
    """Write or check; the exit code."""
    stale = 0
    for name, page in PAGES.items():
        file, text = DOCS / name, page()
        if file.exists() and file.read_text(encoding="utf-8") == text:
            continue
        stale += 1
        if "--check" in arguments:
            sys.stdout.write(f"docs/{name} is not what the code says: run `python -m tools.reference`\n")
        else:
            file.write_text(text, encoding="utf-8")
            sys.stdout.write(f"wrote docs/{name}\n")
    return 1 if stale and "--check" in arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
