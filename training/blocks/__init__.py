"""The sets that weights of torch are constrained to, block-circulant and quantized, and ADMM towards them."""
