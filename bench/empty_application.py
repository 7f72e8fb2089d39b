"""The smallest application there is: what a child weighs by itself."""

import os

from chokaq import ChokaQ

app = ChokaQ()

if os.environ.get("BENCH_CALLS"):
    from bench.calls import count_here

    count_here(os.environ["BENCH_CALLS"])
