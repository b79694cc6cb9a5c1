"""Our own index: splitting whole texts, and searching their chunks exactly."""

__all__: list[str] = []
