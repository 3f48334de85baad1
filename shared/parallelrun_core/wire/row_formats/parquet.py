"""A Parquet file; each segment of a part file is a stream of Arrow's IPC format."""

from parallelrun_core.wire.row_formats import RowFormat

FORMAT = RowFormat((".parquet",))
