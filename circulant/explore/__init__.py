"""Exploration as E-RNN does it (HPCA 2019, section VI): from an accuracy to a design, with few trainings.

`bounds` finds the block sizes worth training from costs alone, `models` trains few of them (phase I), `designs` chooses
bit widths and multipliers of the model that was found (phase II).
"""
