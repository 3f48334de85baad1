"""A first job for somebody's own data: what its files say (`plan`, `kind`, `texts`)."""
