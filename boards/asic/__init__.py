"""The design as standard cells: liberty files, synthesis, timing, area, energy, and files for a full flow."""
