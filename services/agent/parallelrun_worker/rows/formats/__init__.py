"""Formats of rows as workers write them: one module each, named as in core/wire/row_formats, with its `RENDERER`."""
