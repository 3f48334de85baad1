"""What all services speak: job spec, mini-batch message, outcome, queue, job folder, errors."""
