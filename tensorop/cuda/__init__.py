"""The backend `cuda`: products for NVIDIA GPUs. It compiles without a GPU, and a model chooses the variants."""
