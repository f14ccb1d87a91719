"""The command line (extra ``study``). ``app`` lists the commands; each has a file of its own here."""
