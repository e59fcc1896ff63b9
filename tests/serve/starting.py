"""How the tests start the command `serve` in a process of its own."""

START = "import sys; from routelearn.cli import command; command('serve').main(args=sys.argv[1:])"
