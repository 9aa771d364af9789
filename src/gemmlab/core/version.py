"""The version of this package, which records and reports quote."""

__version__ = "0.1.0"
