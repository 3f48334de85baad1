"""The facade of the API for Azure ML's own client, part by part."""
