"""Scenarios on the same luck: `specplan compare`."""
