"""Readers of files that engines, benchmarks and traces already write."""
