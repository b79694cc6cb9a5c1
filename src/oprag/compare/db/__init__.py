"""The results file: its tables and their checks, keys and digests, and every SQL statement of the harness.

`ResultsFile` is the only writer: what `put` has written when it returns is there, whatever happens to the process, and
an answer counts only as long as the replies that it is made of are what was written. `ResultsReader` is the only reader
of whole experiments. Nobody else gets a connection. Messages that may repeat a secret are masked when they are
made, when they are written and when they are read.
"""

__all__: list[str] = []
