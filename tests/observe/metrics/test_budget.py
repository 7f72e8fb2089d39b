"""Label values: never empty, never long, never too many."""

import msgspec
import pytest

from chokaq.observe.metrics.budget import Budget
from chokaq.observe.metrics.catalogue import BY_NAME
from chokaq.observe.metrics.options import MetricsSettings

COMPLETED, FAILED, DLQ = (BY_NAME[f"chokaq_jobs_{name}_total"] for name in ("completed", "failed", "dlq"))


def test_the_defaults_are_those_of_the_reference() -> None:
    assert MetricsSettings() == MetricsSettings(
        enabled=True,
        directory=None,
        fleet_interval=15.0,
        max_queues=100,
        max_types=500,
        max_errors=100,
        max_reasons=50,
        max_value_length=128,
        unknown_value="unknown",
        overflow_value="other",
    )


@pytest.mark.parametrize(("given", "value"), [("", "unknown"), ("  ", "unknown"), (" a ", "a"), ("b" * 200, "b" * 128)])
def test_a_value_is_trimmed_cut_and_never_empty(given: str, value: str) -> None:
    assert Budget(MetricsSettings()).admit(COMPLETED, (given, "t")) == (value, "t")


def test_a_value_that_ends_in_a_space_where_it_is_cut_is_trimmed_once_more() -> None:
    assert Budget(MetricsSettings(max_value_length=3)).admit(COMPLETED, ("ab cd", "t")) == ("ab", "t")


@pytest.mark.parametrize(
    ("instrument", "place", "option"),
    [(COMPLETED, 0, "max_queues"), (COMPLETED, 1, "max_types"), (FAILED, 2, "max_errors"), (DLQ, 2, "max_reasons")],
)
def test_a_label_has_so_many_values_and_then_another_word(instrument: object, place: int, option: str) -> None:
    assert isinstance(instrument, type(COMPLETED))
    spent: list[str] = []
    budget = Budget(msgspec.structs.replace(MetricsSettings(), **{option: 2}), spent.append)
    values = []
    for number in (1, 2, 3, 1):
        labels = ["x"] * len(instrument.labels)
        labels[place] = f"v{number}"
        values.append(budget.admit(instrument, labels)[place])
    assert values == ["v1", "v2", "other", "v1"]
    assert spent == [instrument.labels[place]]


def test_the_words_themselves_use_up_nothing() -> None:
    budget = Budget(MetricsSettings(max_types=1))
    assert [budget.admit(COMPLETED, ("q", value))[1] for value in ("", "other", "a", "b")] == [
        "unknown", "other", "a", "other",
    ]  # fmt: skip


def test_labels_of_the_programs_own_words_have_no_budget() -> None:
    budget = Budget(MetricsSettings(max_reasons=1, max_queues=1))
    lanes = [f"lane{number}" for number in range(300)]
    assert [budget.admit(BY_NAME["chokaq_store_outage_seconds_total"], (lane,))[0] for lane in lanes] == lanes
