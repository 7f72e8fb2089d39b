"""An application's own rules over the built-in classification: lists, a function, and who has the first word."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chokaq.lifecycle.classifier import Classifier, ErrorRules, Hook, Opinion, rules
from chokaq.lifecycle.errors import FatalError, Throttled
from chokaq.lifecycle.failures import FATAL, TRANSIENT, Kind, Verdict, classify


class ApiError(Exception):
    """What a client library raises."""


class NotFound(ApiError):
    """A child of it."""


class Gone(NotFound):
    """A child of that."""


class Busy(Exception):
    """Says how long to wait."""

    def __init__(self, retry_after: object = None) -> None:
        super().__init__("busy")
        self.retry_after = retry_after


def caused(outer: BaseException, cause: BaseException) -> BaseException:
    outer.__cause__ = cause
    return outer


def judged(error: BaseException, *sets: ErrorRules) -> Verdict:
    return Classifier(sets)(error)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (ApiError(), Kind.TRANSIENT),
        (NotFound(), Kind.FATAL),
        (Gone(), Kind.FATAL),
        (caused(RuntimeError(), Gone()), Kind.FATAL),
        (caused(ApiError(), NotFound()), Kind.TRANSIENT),
        (ExceptionGroup("all", [NotFound(), FatalError()]), Kind.FATAL),
        (ExceptionGroup("mixed", [NotFound(), ApiError()]), Kind.TRANSIENT),
        (ExceptionGroup("busy", [NotFound(), Busy(3)]), Kind.THROTTLED),
    ],
)
def test_the_lists_go_by_the_nearest_class_and_walk_causes_and_groups(error: BaseException, kind: Kind) -> None:
    own = rules(fatal=NotFound, transient=(ApiError,), throttled=(Busy,))
    assert judged(error, own).kind is kind


def test_a_listed_class_wins_over_the_built_in_rules() -> None:
    own = rules(transient=(TypeError, FatalError), fatal=ConnectionError)
    assert judged(TypeError(), own) == judged(FatalError(), own) == TRANSIENT
    assert judged(ConnectionResetError(), own) == FATAL
    assert judged(AttributeError(), own) == FATAL, "what the lists do not name stays as it is"
    assert judged(OSError(), own) == TRANSIENT


def test_the_outer_link_decides_before_any_rule_about_an_inner_one() -> None:
    """A handler that raises FatalError from a passing error knows what it says."""
    assert judged(caused(FatalError("no such address"), ApiError()), rules(transient=ApiError)) == FATAL
    assert judged(caused(Throttled(9), NotFound()), rules(fatal=NotFound)) == Verdict(Kind.THROTTLED, 9.0)


def test_the_first_set_of_rules_has_the_first_word() -> None:
    of_type, of_app = rules(transient=NotFound), rules(fatal=ApiError)
    assert judged(NotFound(), of_type, of_app) == TRANSIENT
    assert judged(NotFound(), of_app, of_type) == FATAL
    assert judged(ApiError(), of_type, of_app) == FATAL


@pytest.mark.parametrize(
    ("asked", "kept"),
    [
        (7, 7.0),
        (1.2345, 1.2345),
        (timedelta(minutes=1), 60.0),
        (-3, 0.0),
        (None, None),
        ("30", None),
        (float("nan"), None),
    ],
)
def test_a_throttled_class_may_say_how_long(asked: object, kept: float | None) -> None:
    assert judged(Busy(asked), rules(throttled=Busy)) == Verdict(Kind.THROTTLED, kept)
    assert judged(Busy(asked), rules(hook=lambda _error: "throttled")) == Verdict(Kind.THROTTLED, kept)


@pytest.mark.parametrize(
    ("opinion", "verdict"),
    [
        ("fatal", FATAL),
        ("Transient", TRANSIENT),
        (Kind.FATAL, FATAL),
        (Verdict(Kind.THROTTLED, 4.0), Verdict(Kind.THROTTLED, 4.0)),
        (Verdict(Kind.THROTTLED, -4.0), Verdict(Kind.THROTTLED, 0.0)),
        (None, TRANSIENT),
    ],
)
def test_a_function_says_what_an_exception_means(opinion: Opinion, verdict: Verdict) -> None:
    assert judged(ApiError(), rules(hook=lambda _error: opinion)) == verdict


def test_the_function_sees_the_chain_link_by_link_and_speaks_before_its_lists() -> None:
    seen: list[str] = []

    def hook(error: BaseException) -> Opinion:
        seen.append(type(error).__name__)
        return "fatal" if isinstance(error, NotFound) else None

    own = rules(transient=NotFound, hook=hook)
    group = BaseExceptionGroup("both", [caused(RuntimeError(), NotFound()), Gone()])
    assert judged(caused(KeyError(), group), own) == FATAL
    assert seen == ["KeyError", "ExceptionGroup", "RuntimeError", "NotFound", "Gone"]


def test_a_function_may_judge_a_group_as_a_whole() -> None:
    hook: Hook = lambda error: "fatal" if isinstance(error, BaseExceptionGroup) else None  # noqa: E731
    assert judged(ExceptionGroup("x", [OSError()]), rules(hook=hook)) == FATAL


def raising(_error: BaseException) -> Opinion:
    raise LookupError("a bug in the classifier")


def leaving(_error: BaseException) -> Opinion:
    raise SystemExit(1)


@pytest.mark.parametrize("hook", [raising, leaving, lambda _error: "perhaps", lambda _error: 5])
def test_a_function_that_fails_leaves_the_verdict_to_the_other_rules_and_is_reported_once(
    hook: Callable[[BaseException], Opinion],
) -> None:
    told: list[tuple[Hook, str]] = []
    own = rules(fatal=ApiError, hook=hook)
    judge = Classifier([own], lambda which, error: told.append((which, type(error).__name__)))

    assert judge(caused(RuntimeError(), ApiError())) == FATAL
    assert judge(caused(KeyError(), TypeError())) == FATAL
    assert judge(OSError()) == TRANSIENT
    assert [which for which, _ in told] == [hook] * 3, "once for each failure, not for each link"


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: rules(fatal=5), "fatal must name exception classes, not 5"),  # type: ignore[arg-type]
        (lambda: rules(transient=("OSError",)), "transient must name exception classes"),  # type: ignore[arg-type]
        (lambda: rules(throttled=int), "throttled must name exception classes"),  # type: ignore[arg-type]
        (lambda: rules(fatal=(ApiError, OSError), transient=ApiError), "ApiError stands in two lists"),
        (lambda: rules(fatal=OSError).merged(rules(throttled=OSError)), "OSError stands in two lists"),
        (lambda: rules(hook=raising).merged(rules(hook=leaving)), "one function decides"),
        (lambda: rules(hook="name"), "must be a function"),  # type: ignore[arg-type]
    ],
)
def test_rules_that_cannot_be_meant_are_refused(wrong: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        wrong()


def test_rules_add_up() -> None:
    own = rules(fatal=ApiError).merged(rules(transient=OSError)).merged(rules(fatal=KeyError, hook=raising))
    assert own == ErrorRules((ApiError, KeyError), (OSError,), (), raising)
    assert not ErrorRules()


errors = st.recursive(
    st.sampled_from([FatalError, Throttled, OSError, TypeError, ValueError, KeyError, ApiError, TimeoutError]).map(
        lambda kind: kind()
    ),
    lambda inner: st.one_of(
        st.builds(caused, inner.map(lambda _: RuntimeError()), inner),
        st.lists(inner, min_size=1, max_size=3).map(lambda some: ExceptionGroup("group", some)),
    ),
    max_leaves=6,
)


@given(errors)
def test_without_an_opinion_the_built_in_rules_decide(error: Exception) -> None:
    silent = rules(fatal=Gone, hook=lambda _error: None)
    assert judged(error, silent) == judged(error) == classify(error)


@given(errors)
def test_who_calls_everything_fatal_is_believed(error: Exception) -> None:
    assert judged(error, rules(hook=lambda _error: "fatal")) == FATAL
    assert judged(error, rules(fatal=Exception, transient=())) == FATAL
