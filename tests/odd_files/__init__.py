"""Files as the world writes them, made by a seeded generator that knows every value, and read as jobs read them.

    values.py    columns of values, and whether what was read is one of them
    making.py    the files of a case: encoding, line ends, compression, header, size, litter
    cases.py     which cases there are, for each kind of oddity
    reading.py   a case, listed and cut as a leader does it and read as a worker does it, in both forms of a job
    verdicts.py  exact, refused, warned, silent, or a false alarm

`make odd-files` prints the figures; `tests/odd_files/test_odd_files.py` asserts them.
"""
