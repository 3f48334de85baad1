"""Reads the rows of a mini-batch of a table. Loaded only by jobs that have one.

table.py       one input: from the pieces of a mini-batch to its DataFrame
text_schema.py headers of text files, and the columns of their table
path_keys.py   values in the paths of files: columns of rows, and keys of groups
text.py        text files: which bytes a piece owns, and the header
records.py     the grammar of delimited text, exactly, in plain Python
inference.py   what type a column has, from its first values
schema.py      columns and types, frozen in the job folder
delimited.py   delimited text to a DataFrame, by the fastest parser that agrees with the grammar
by_arrow.py, by_pandas.py   those parsers, and what they may be given
arrow_columns.py, fixed_dates.py   columns of Arrow's texts to columns of a type, all at once
conversion.py  columns of text to columns of a type
json_lines.py, parquet.py   the other formats
splitting.py, grouped.py    rows that are grouped by keys: how they are split, and where they are then
steps.py       what is done to the rows after the reading

Standard library only when imported; pandas, numpy and pyarrow come from the user's environment, when they are first
needed.
"""
