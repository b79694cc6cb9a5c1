"""What all packages use and no caller imports."""

__all__: list[str] = []
