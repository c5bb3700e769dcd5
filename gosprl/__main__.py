"""`python -m gosprl`: the command line."""

from gosprl.cli import main

main()
