"""The instruments as functions: check, bench, explain, climb, compare, profile. The command line calls them, too."""
