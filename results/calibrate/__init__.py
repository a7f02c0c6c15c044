"""What measurements say about costs: `specplan calibrate`."""
