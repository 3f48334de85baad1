"""A disk that loses a byte, an end or a file of a job's folder: the job completes exactly, or says what is missing."""
