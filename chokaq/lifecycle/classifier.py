"""What an application says its exceptions mean, over the built-in rules of chokaq.lifecycle.failures.

The chain of causes is walked from the outside in as ever. At each link the rules of the job's type speak first, then those of its
profile and of the application, then the built-in ones; within one set of rules the function before the lists, and of the lists the
one that names the nearest class. The first that recognises the link decides.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta

from chokaq.lifecycle.failures import FATAL, TRANSIENT, Kind, Verdict, judge, seconds

Errors = type[BaseException] | tuple[type[BaseException], ...]
Opinion = Verdict | Kind | str | None
Hook = Callable[[BaseException], Opinion]
"""Called with one exception of the chain: "fatal", "transient", "throttled", a Kind, a Verdict, or None for no opinion."""
Broken = Callable[[Hook, BaseException], None]
"""Called with a hook that raised, or answered what cannot be meant, and the exception that says so."""


@dataclass(frozen=True, slots=True)
class ErrorRules:
    """The rules of an application, of a profile or of one type."""

    fatal: tuple[type[BaseException], ...] = ()
    """Another attempt can only reach the same answer: to the DLQ at once."""
    transient: tuple[type[BaseException], ...] = ()
    """Another attempt may succeed."""
    throttled: tuple[type[BaseException], ...] = ()
    """A dependency asked for patience; the exception's `retry_after` (seconds or a timedelta), when it has one, is how much."""
    hook: Hook | None = None
    """A function that knows more than its class."""

    def __bool__(self) -> bool:
        return bool(self.fatal or self.transient or self.throttled or self.hook)

    def listed(self, error: BaseException) -> Verdict | None:
        """What the lists say of one exception: the entry for its class, or for the nearest class it inherits from."""
        for kind in type(error).__mro__:
            if kind in self.fatal:
                return FATAL
            if kind in self.transient:
                return TRANSIENT
            if kind in self.throttled:
                return Verdict(Kind.THROTTLED, _retry_after(error))
        return None

    def merged(self, other: "ErrorRules") -> "ErrorRules":
        """Both sets of rules in one. Raises ValueError when they contradict each other."""
        if self.hook is not None and other.hook is not None:
            raise ValueError("there is a classifier already; one function decides")
        return rules(
            self.fatal + other.fatal,
            self.transient + other.transient,
            self.throttled + other.throttled,
            self.hook or other.hook,
        )


def rules(fatal: Errors = (), transient: Errors = (), throttled: Errors = (), hook: Hook | None = None) -> ErrorRules:
    """Checked rules. Raises ValueError for what is no exception class, a class in two lists, or a hook that cannot be called."""
    found = ErrorRules(
        _classes("fatal", fatal), _classes("transient", transient), _classes("throttled", throttled), hook
    )
    named: set[type[BaseException]] = set()
    for classes in (found.fatal, found.transient, found.throttled):
        for kind in set(classes) & named:
            raise ValueError(f"{kind.__qualname__} stands in two lists; it is one of fatal, transient and throttled")
        named.update(classes)
    if hook is not None and not callable(hook):
        raise ValueError(f"a classifier must be a function of the exception, not {hook!r}")
    return found


class Classifier:
    """Judges exceptions by several sets of rules, the first having the first word, and by the built-in ones last."""

    def __init__(self, sets: Sequence[ErrorRules] = (), broken: Broken = lambda _hook, _error: None) -> None:
        self._sets = tuple(each for each in sets if each)
        self._broken = broken

    def __call__(self, error: BaseException) -> Verdict:
        """The verdict. Never raises: a hook that raises has no say in this verdict."""
        if not self._sets:
            return judge(error)
        mute: set[int] = set()

        def said(link: BaseException) -> Verdict | None:
            for each in self._sets:
                verdict = self._asked(each.hook, link, mute) or each.listed(link)
                if verdict is not None:
                    return verdict
            return None

        return judge(error, said)

    def _asked(self, hook: Hook | None, link: BaseException, mute: set[int]) -> Verdict | None:
        if hook is None or id(hook) in mute:
            return None
        try:
            return _verdict(hook(link), link)
        except BaseException as broken:  # noqa: BLE001 - the application's own code; a failure must still be recorded
            mute.add(id(hook))
            self._broken(hook, broken)
            return None


def _verdict(opinion: Opinion, link: BaseException) -> Verdict | None:
    match opinion:
        case None:
            return None
        case Verdict(kind=kind, retry_after=asked):
            return Verdict(kind, seconds(asked))
        case Kind():
            kind = opinion
        case str():
            kind = Kind(opinion.lower())
        case _:
            raise TypeError(f"a classifier answers fatal, transient, throttled or None, not {opinion!r}")
    return Verdict(kind, _retry_after(link) if kind is Kind.THROTTLED else None)


def _retry_after(error: BaseException) -> float | None:
    """How long the exception says to wait, in seconds; None: it does not say."""
    value = getattr(error, "retry_after", None)
    return seconds(value.total_seconds() if isinstance(value, timedelta) else value)


def _classes(name: str, given: Errors) -> tuple[type[BaseException], ...]:
    classes = given if isinstance(given, tuple | list | set | frozenset) else (given,)
    for kind in classes:
        if not (isinstance(kind, type) and issubclass(kind, BaseException)):
            raise ValueError(f"{name} must name exception classes, not {kind!r}")  # noqa: TRY004 - as every wrong rule
    return tuple(classes)
