"""Data folders that older versions wrote, which every later version must open and continue."""
