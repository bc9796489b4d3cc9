"""From a torch model of your own to verified Verilog, one step after the other.

Run it with `python examples/torch_to_verilog.py [FOLDER] [EPOCHS]`; the design is written to FOLDER.
"""
import sys

import torch
from torch import nn

import circulant


class Reader(nn.Module):
    """Reads an image row by row, and names its digit after the last one."""

    def __init__(self) -> None:
        super().__init__()
        self.gru = nn.GRU(8, 32, batch_first=True)
        self.classifier = nn.Linear(32, 10)

    def forward(self, rows):
        states, _ = self.gru(rows)  # (N, 8 rows, 32)
        return self.classifier(states[:, -1])


def main(folder: str = "runs/example", epochs: int = 15) -> None:
    torch.manual_seed(0)
    data = circulant.load_data("digits")

    # Each matrix has its own block size, by the name of its module or parameter. ADMM draws the dense weights towards
    # the block-circulant set; retraining then stays inside of it. `circulant.compress` alone is the bare projection.
    trained = circulant.train_admm(Reader(), data, block_size={"gru": 8, "classifier": 4}, epochs=epochs,
                                   retrain_epochs=epochs)

    # The golden model: integers in formats that the calibration data needs. Every later step must equal it.
    network = circulant.export(trained.model, data.train_x, name="reader", weight_bits=12, activation_bits=16)
    accuracy = (network.run(data.test_x).real.argmax(-1) == data.test_y).mean()
    print(f"accuracy of the integers: {accuracy:.2%}")

    design = circulant.generate(network, multipliers=48)
    design.write(folder)
    print(f"{folder}: {design.multipliers} multipliers, {design.memory_bits:,} memory bits")

    check = circulant.verify(folder, network.vectors(data.test_x))
    print(f"{check.simulator}: {check.words:,} output words, {check.mismatches} mismatches, "
          f"{check.cycles_per_step:g} cycles per step")
    if check.first:
        sys.exit(f"first mismatch: {check.first}")


if __name__ == "__main__":
    main(*sys.argv[1:2], *map(int, sys.argv[2:3]))
