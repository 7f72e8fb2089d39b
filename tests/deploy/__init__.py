"""What stands in deploy/: held against the program itself, and against the tools that will read it."""
