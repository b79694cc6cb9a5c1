"""The results file: its tables, keys, and all SQL of the harness.

`ResultsFile` is the only writer, and reads the work that is not repeated. Once `put` returns, its records survive a
crash of the process. `ResultsReader` is the only reader of whole experiments. No other module opens a connection.
Messages that may contain a secret are masked when created, written and read.
"""

__all__: list[str] = []
