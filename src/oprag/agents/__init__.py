"""What agents need, whatever their framework: one ordered context over many searches, and tools that search and read.

The names that callers need are exported by `oprag`.
"""

__all__: list[str] = []
