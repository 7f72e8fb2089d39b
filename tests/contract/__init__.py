"""One suite, run over every store: the rules of the design and every operation of chokaq.store.protocol."""
