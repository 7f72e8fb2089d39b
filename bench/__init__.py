"""Benches: how fast chokaq is, beside the bare store and beside what people use today. `python -m bench --help`."""
