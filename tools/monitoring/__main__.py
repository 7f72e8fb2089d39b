"""Writes the generated files anew."""

from tools.monitoring import DEPLOY, FILES

if __name__ == "__main__":
    for name, text in FILES.items():
        (DEPLOY / name).write_text(text(), encoding="utf-8")
