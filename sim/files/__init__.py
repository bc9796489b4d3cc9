"""Files that come from anywhere: opened within bounds, read by rules, swept and cached."""
