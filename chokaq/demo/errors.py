"""What can keep a demo from running."""


class DemoError(Exception):
    """The message says what is missing and what to do."""
