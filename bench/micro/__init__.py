"""Micro-benchmarks with pytest-benchmark, one file per part. Not part of the tests: see docs/performance.md."""
