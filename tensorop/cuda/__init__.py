"""Products for NVIDIA GPUs: the backend `cuda`, which compiles without a GPU and chooses by a model."""
