"""The AHP protocol of one client, without I/O."""
