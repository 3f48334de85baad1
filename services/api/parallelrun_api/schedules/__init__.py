"""Schedules, as clients make and find them: their answers, what becomes of a request, and how they are shown."""
