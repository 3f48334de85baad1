"""The core that all services share: job spec, mini-batch message, outcome, queue, job folder, errors."""
