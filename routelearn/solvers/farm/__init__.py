"""The farm: one solver over many instances, on all cores or on a cluster."""
