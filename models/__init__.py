"""Closed forms: pure functions and small frozen dataclasses over NumPy arrays."""
