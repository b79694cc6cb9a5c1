"""The results file: its tables, keys, and all SQL of the harness.

`ResultsFile` is the only writer, and reads the work that is not repeated; `ResultsReader` reads whole experiments.
Messages that may contain a secret are masked when created, written and read.
"""

__all__: list[str] = []
