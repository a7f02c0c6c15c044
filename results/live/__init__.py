"""The live page: `specplan serve`."""
