"""The version of gemmlab, which is stored in records and reports."""

__version__ = "0.1.0"
