"""The command line: arguments in, library calls, text or JSON out. No byte layout is known here."""
