"""Values that pass between layers, and the rules of their shapes, for golden and float layers alike."""
