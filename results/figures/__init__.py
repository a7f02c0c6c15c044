"""Figures, as plain plotly dictionaries, and how they look."""
