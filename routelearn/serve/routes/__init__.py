"""The routes of the service, by what they are for: solving, jobs, reading."""
