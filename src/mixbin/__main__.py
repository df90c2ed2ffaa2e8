"""``python -m mixbin`` is the command."""

from mixbin.cli import main

main()
