"""Discrete events: requests, replicas and GPUs over time."""
