"""Why speculation pays or does not, from what was measured."""
