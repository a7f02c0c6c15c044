"""Predicted against measured: fit on the named rows, predict the others, say how far off."""
