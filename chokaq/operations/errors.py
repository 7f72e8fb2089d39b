"""Why an operator's request was refused."""


class OperationError(Exception):
    """The request is out of bounds, or what it names does not exist. The text says what to do; nothing was changed."""


class UnknownJob(OperationError):
    """No pillar holds the job that was named."""


class NotAllowed(OperationError):
    """Whoever asks may not do this, whatever the request says. Nothing was changed."""
