"""``python -m circulant``, for launchers that take a module: ``torchrun --nproc-per-node 2 -m circulant train``."""
from circulant.cli import main

if __name__ == "__main__":
    main()
