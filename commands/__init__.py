"""The commands: parse, call one function of `results`, print its answer."""
