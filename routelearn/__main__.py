"""`python -m routelearn` is the command `routelearn`."""

from routelearn.cli import main

if __name__ == "__main__":
    main()
