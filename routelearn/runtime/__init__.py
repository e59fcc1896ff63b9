"""The machine: devices, compiling, files written whole."""
