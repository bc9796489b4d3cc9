"""What holds for all tests."""
import signal

signal.signal(signal.SIGINT, signal.default_int_handler)
"""A shell's background job ignores this signal, and so would every program that a test interrupts."""
