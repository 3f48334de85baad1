"""Names that documents write: of assets, of computes, and of images that are built for jobs."""
