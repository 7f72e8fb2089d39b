"""The documentation: every block of code in it runs, and what is generated is what the code says."""
