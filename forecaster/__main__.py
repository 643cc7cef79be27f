"""`python -m forecaster`: the command without its entry point."""

from forecaster.entry import main

main()
