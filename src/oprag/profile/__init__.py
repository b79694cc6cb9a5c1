"""Profiles: the options of a setting in a file, to be loaded by whatever retrieves or answers."""

from oprag.profile.contents import FILE_NAME, Profile
from oprag.profile.reading import read_profile
from oprag.profile.writing import write_profile

__all__ = ["FILE_NAME", "Profile", "read_profile", "write_profile"]
