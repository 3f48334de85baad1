"""Parsers of what others have written, given input that nobody has thought of.

A parser may answer any input, or refuse it with the errors that it names; anything else (another exception, a crash, an
answer that contradicts itself, ten seconds) is a find. Atheris looks for such inputs, led by the lines that each input
reaches. What it finds goes to `finds/NAME/`, and from then on is read in `make test`.

    python -m tests.fuzz                    all parsers, a minute each
    python -m tests.fuzz --seconds 600 url  this one, ten minutes
    python -m tests.fuzz --turn COMMIT      some of them, a minute in all; another commit, other ones

- `parser.py`: what is fuzzed: a name, inputs to begin with, and how one is read
- `parsers/`: the parsers, by what they read
- `child.py`: the process that has Atheris in it
- `test_finds.py`: inputs to begin with, and all finds of former times, without Atheris
"""
