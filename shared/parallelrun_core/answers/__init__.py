"""The answers of the API, each as one class: the API sends them, its OpenAPI document describes them, and the client
reads them.

A class says what a server of this release sends, which is always all of its fields. A field has a default if a client
reads answers without it, as those of other releases may be; unknown fields are ignored.
"""
