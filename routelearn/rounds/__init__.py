"""Rounds as dispatchers have them: time windows, fleets, depots, pickups, shipments, shifts, breaks, several trips.

`model` says what a round may have and `plan` what an answer is; `files` reads rounds, `timing` puts times to a sequence
of visits, `referee` checks a plan as it stands, `search` finds one.
"""
