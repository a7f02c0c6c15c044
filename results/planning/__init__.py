"""The questions of `specplan plan`, one file a question."""
