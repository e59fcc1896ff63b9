"""On a GPU, by Triton."""
