"""The instruments as functions: check, bench, explain, climb, compare, profile, tune. The command line calls them."""
