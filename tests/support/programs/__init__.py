"""Small real programs that tests start with subprocess; see tests.support.processes."""
