"""A network over several chips: which part lies where, the links between them, and their designs."""
