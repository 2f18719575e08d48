"""What tests/run is made of: one module a suite, common.py for processes and counting."""
