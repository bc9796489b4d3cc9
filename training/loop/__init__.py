"""A training from phase to phase: batches, optimizers, distillation, checkpoints, processes."""
