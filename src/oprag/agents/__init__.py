"""What agents need, whatever their framework: tools that search and read, which the adapters convert."""

__all__: list[str] = []
