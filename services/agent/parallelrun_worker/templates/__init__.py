"""The template of workers: a process that has imported what an entry script imports first, and is forked for each one.

Nothing of the user's runs in it: `leading_imports.py` says what is imported, `fitness.py` whether forking loses nothing
of that, and `template.py` forks.
"""
