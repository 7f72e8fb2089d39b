"""The commands. Each module of this package registers one; nothing heavy is imported before a command needs it."""


def main() -> None:
    """The program `chokaq`."""
    from chokaq.cli.program import build

    build()()
