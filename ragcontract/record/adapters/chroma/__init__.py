"""Collections of Chroma as targets."""
