"""The same scenario over ranges of its fields: `specplan sweep`."""
