"""The folders below share the modules that lie here."""
