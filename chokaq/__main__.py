"""`python -m chokaq`."""

from chokaq.cli import main

if __name__ == "__main__":
    main()
