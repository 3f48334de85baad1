"""Reads the rows of a mini-batch of a table. Loaded only by jobs that have one.

table.py       one input: from the pieces of a mini-batch to its DataFrame
formats/       the kinds of tables, a module for each; table_format.py is what they have in common
path_keys.py   values in the paths of files: columns of rows, and keys of groups
steps.py       what is done to the rows after the reading
together.py    frames one below the other, with every whole number as it is
data_warnings.py   warnings about the data, on their way to the agent
preview.py     the program that shows the first rows of a table
columns.py     whether the steps name columns that the table has
plan_records.py records of `inputs.json`: their checksums, and what older releases did not freeze
elsewhere.py   ranges of files, and files in object stores: what is here of them, and asking for it
grouped.py     rows that are grouped by keys: where they are then
arrow_rows.py  the rows of a mini-batch for `mini_batch_format`: arrow, polars, pandas_pyarrow
arrow_arrays.py   columns as arrays of Arrow
stacking.py    Arrow tables one below the other
arrow_values.py   whether such an array holds what stood in Python's values

For kinds that are text:

text_format.py ranges of bytes to rows
text.py        which bytes a piece owns
byte_profile.py  which bytes a text has
sniffing.py    encoding and line ends of a file, by its first bytes
unpacking.py   the content of compressed files
crc32c.py      the checksum that frames of Snappy have
charsets.py    where a text is not in its encoding, and which one to write
schema.py      columns and types, frozen in the job folder
inference.py   what type a column has, from its first values
text_dtype.py  the dtype of columns of texts, as the job says
conversion.py  columns of text to columns of a type
values.py      which texts fit a type, and what becomes of the others

For delimited text:

heads.py       what is before the rows of a file: lines that are no records, and the header
records.py     the grammar, exactly, in plain Python
parsers.py     to a DataFrame, by the fastest parser that agrees with the grammar
by_arrow.py, by_pandas.py   those parsers, and what they may be given
arrow_types.py the types that columns get from Arrow's parser
arrow_columns.py, fixed_dates.py   columns of Arrow's texts to columns of a type, all at once
assembling.py  columns to a DataFrame
line_ends.py   carriage returns that end its records
splitting.py   its records one by one
misreadings.py, quotes.py, ragged.py   what was probably meant otherwise: a warning says so
foreign.py     files of other kinds that are read as text

For JSON lines: json_by_arrow.py, lines to columns by pyarrow.

For Parquet files:

parquet_reader.py    ranges of their rows to Arrow tables
parquet_pages.py     rows of a row group that is cut, by the pages that have them
compact_protocol.py  the encoding of the headers of pages, and of footers
parquet_footer.py    whether a footer is damaged
parquet_rows.py      Arrow tables to DataFrames

Standard library only when imported; pandas, numpy and pyarrow come from the user's environment, when they are first
needed.
"""
