"""What people write and bring: scenario files, units, the bundled library, importers."""
