"""The processes of workers: started, spoken to, heard, ended with all that they leave behind."""
