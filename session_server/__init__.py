"""Live agent sessions that people, devices and programs watch and answer together."""

__version__ = "0.1.0"
