"""The C target: embedded processors, CirCNN's third platform, and a fast emulator of golden networks.

`generate_c` writes dependency-free C99 whose integers are those of the golden model; `Emulator` compiles it and runs
batches. A network is a chain of layers; each kind of layer has its file here and its template in ``templates``.
"""
from circulant.hw.c.design import CDesign, generate_c
from circulant.hw.c.emulator import Emulator

__all__ = ["CDesign", "Emulator", "generate_c"]
