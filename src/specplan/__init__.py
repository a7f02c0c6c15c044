"""Plan speculative decoding before the hardware runs."""
