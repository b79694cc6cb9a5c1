"""The results file: its tables and their checks, keys and digests, and every SQL statement of the harness.

`ResultsFile` is the only writer: what `put` has written when it returns outlives the process, and an answer is valid
only as long as the replies that it was made of are unchanged. `ResultsReader` is the only reader of whole experiments.
No other module has a connection. Messages that may repeat a secret are masked when they are made, written and read.
"""

__all__: list[str] = []
