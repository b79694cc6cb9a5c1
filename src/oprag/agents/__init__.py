"""What agents need, whatever their framework: one ordered context over many searches.

The names that callers need are exported by `oprag`.
"""

__all__: list[str] = []
