"""What people get: metrics, intervals, tables, figures, run folders."""
