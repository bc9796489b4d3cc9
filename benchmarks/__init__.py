"""Every figure that README and docs quote, each table with one command: python -m benchmarks NAME."""
