"""One solver over many instances: on all cores, or on a cluster."""
