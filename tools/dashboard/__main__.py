"""Writes the dashboard anew."""

from tools.dashboard import FILE, text

if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
