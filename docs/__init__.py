"""Generating the parts of the documentation that come from code."""
