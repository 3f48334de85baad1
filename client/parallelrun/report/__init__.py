"""A job as one HTML file, to be attached to a ticket: what is known (`facts`), and how it is shown (`page`).

Nothing here asks anybody but the public REST API, and nothing that comes from there reaches the file but through
`markup`, which escapes it.
"""
