"""The repairs are tested over a store in memory; the contract suite holds the real ones to the same interface."""

import pytest

from tests.support.fake_repairs import FakeRepairs


@pytest.fixture
def fake() -> FakeRepairs:
    """An empty store in memory."""
    return FakeRepairs()
