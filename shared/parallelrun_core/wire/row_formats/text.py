"""Lines, as in the reference (§7), with the names of the columns at the top if the job says so."""

from parallelrun_core.wire.row_formats import RowFormat

FORMAT = RowFormat((), ("append_row_separator", "append_row_dataframe_header", "append_row_safe_output"))
