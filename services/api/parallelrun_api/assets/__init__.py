"""Assets, as clients make and find them: their answers (models.py), and what becomes of a request (service.py)."""
