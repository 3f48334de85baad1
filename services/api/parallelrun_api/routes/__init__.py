"""The addresses of the API, by subject."""

from starlette.convertors import register_url_convertor

from parallelrun_api.routes.responses import JobConvertor

register_url_convertor("job", JobConvertor())
register_url_convertor("part", JobConvertor())
