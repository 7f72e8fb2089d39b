"""`chokaq demo`: the main job on real input, and an account of every job by what the outside world really received."""
