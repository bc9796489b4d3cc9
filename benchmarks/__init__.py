"""Every figure that the README quotes, each table with one command: python -m benchmarks NAME."""
