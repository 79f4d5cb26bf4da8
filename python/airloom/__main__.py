"""`python -m airloom` is `airloom`."""

from airloom.cli import main

main()
