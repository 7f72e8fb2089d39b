"""The settings of metrics (`metrics:` in chokaq.yaml)."""

import msgspec


class MetricsSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker counts about itself."""

    enabled: bool = True
    """Whether the processes of a worker count. False: nothing is counted, written or exported."""
    directory: str | None = None
    """The folder in which each worker makes a private one for its figures (some 100 kB per process, best in memory).

    None: the first of $RUNTIME_DIRECTORY, $XDG_RUNTIME_DIR, /dev/shm and the folder for temporary files that can be written.
    """
    fleet_interval: float = 15.0
    """The leader of the fleet looks at the depths and ages of all queues this often."""
    max_queues: int = 100
    """Different values of the label `queue` per process at most; what comes later is counted under overflow_value."""
    max_types: int = 500
    """The same of the label `type`."""
    max_errors: int = 100
    """The same of `error` and `number`."""
    max_reasons: int = 50
    """The same of `reason`."""
    max_value_length: int = 128
    """Longer label values are cut to so many characters."""
    unknown_value: str = "unknown"
    """Stands for a label value that is empty or not known."""
    overflow_value: str = "other"
    """Stands for the label values beyond the budgets above."""
