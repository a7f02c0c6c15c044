"""What acceptance figures mean: law, convert, import and export."""
