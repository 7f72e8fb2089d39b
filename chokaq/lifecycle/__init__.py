"""Pure rules of a job's life: no clock, no database, no event loop."""
