"""Azure ML's own Python client, unmodified, against an embedded cluster: `make azure-client`."""
