"""The words of the house: ids, devices, reasons, errors. Plain values; never I/O, never a clock."""
