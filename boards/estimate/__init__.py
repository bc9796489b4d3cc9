"""Estimates of designs on devices before anything is generated, and the smallest change that makes one fit."""
