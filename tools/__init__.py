"""Programs for the people who work on chokaq; not part of the package."""
