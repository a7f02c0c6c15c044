"""What fits on the GPUs: `specplan memory`."""
