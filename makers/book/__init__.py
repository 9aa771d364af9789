"""The documentation site, assembled from docs/ and the catalog of kernels."""
