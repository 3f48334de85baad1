"""Views: what is known of jobs, for those who ask. Nothing here changes anything."""
