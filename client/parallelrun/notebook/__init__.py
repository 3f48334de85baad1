"""Jobs in notebooks: what is drawn (`widget`), and keeping it up to date below a cell (`cell`).

Nothing here needs IPython to be installed: where a notebook runs, it is loaded already.
"""
