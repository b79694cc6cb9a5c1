"""Running an experiment: what is planned, asked, kept and reported."""

__all__: list[str] = []
