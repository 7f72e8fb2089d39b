"""What can be wrong with a registration or with a job that is being enqueued."""

from chokaq.lifecycle.errors import FatalError


class RegistrationError(ValueError):
    """Contracts, handlers, pipes or profiles contradict each other; raised while the application is imported or booted."""


class EnqueueError(FatalError, ValueError):
    """The job cannot be enqueued as it is; nothing was stored. Fatal, since a handler that enqueues it again gets no further."""


class UnknownJobType(EnqueueError):
    """The job's type or type key is not registered."""


class PayloadTooLarge(EnqueueError):
    """The encoded payload exceeds `envelope.max_payload_bytes`."""


class JobNotFound(LookupError):
    """No pillar holds a job of that id: never enqueued, not committed yet, or purged."""
