"""The results file: its tables, their checks, keys and digests, and all SQL of the harness.

`ResultsFile` is the only writer. Once `put` returns, its records survive a crash of the process, and an answer is
valid only while the replies it is based on are unchanged. `ResultsReader` is the only reader of whole experiments.
No other module opens a connection. Messages that may contain a secret are masked when created, written and read.
"""

__all__: list[str] = []
