"""The web page: its files, and how they are sent. What it shows, it asks of the REST API, as any client could."""
