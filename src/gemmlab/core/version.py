"""The version of this package, which is stored in records and reports."""

__version__ = "0.1.0"
