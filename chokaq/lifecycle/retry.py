"""How long a job waits for its next attempt (design §8)."""


def backoff(
    attempts: int, *, base: float, multiplier: float, maximum: float, jitter: float = 0.0, chance: float = 0.0
) -> float:
    """Seconds until the next attempt, after `attempts` were started: `min(base·multiplier^(n-1), maximum)` plus jitter.

    `jitter`: the most that is added; `chance` in [0, 1) picks how much of it. The sum stays inside `maximum`. Any number of
    attempts is allowed: a delay too large for a float is the maximum.
    """
    exponent = max(attempts, 1) - 1
    try:
        delay = base * multiplier**exponent
    except OverflowError:
        delay = maximum if base > 0 else 0.0
    return max(0.0, min(min(delay, maximum) + jitter * chance, maximum))


def throttle(retry_after: float, *, maximum: float) -> float:
    """Seconds until the next attempt when a dependency asked for `retry_after`: exactly that, capped."""
    return max(0.0, min(retry_after, maximum))


def exhausted(attempts: int, max_attempts: int) -> bool:
    """True when no further attempt may be started after `attempts` were (crashes included)."""
    return attempts >= max_attempts
