"""The process that answers probes: live, ready, healthy, and the figures, on a port of its own and without the Deck's packages."""
