"""How the tests start the command `serve` in a process of its own."""

START = "import sys; from routelearn.cli import main; main(['serve', *sys.argv[1:]])"
