"""A first job for somebody's own data: what its files say (`plan`), and writing them (`write`)."""
