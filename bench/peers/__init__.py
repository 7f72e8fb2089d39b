"""Other job systems, each set up as its documentation recommends: one file per system.

These modules run in the peers' own environments, where chokaq is not installed: they import nothing of ours but bench.record and
bench.peers.kit, which need the standard library only.
"""
