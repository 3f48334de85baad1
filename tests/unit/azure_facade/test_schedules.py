"""The schedules that clients send become the documents that users write."""

import pytest

from parallelrun_api.azure.answers import NotSupported
from parallelrun_api.azure.schedules import schedule_document
from parallelrun_core.errors import InvalidInput

JOB = {"jobType": "Pipeline", "jobs": {"step": {"type": "command", "command": "true"}}}


def test_a_recurrence() -> None:
    document = schedule_document(
        {
            "displayName": "nightly",
            "trigger": {
                "triggerType": "Recurrence",
                "frequency": "Week",
                "interval": 2,
                "timeZone": "UTC",
                "startTime": "2026-01-01T00:00:00",
                "schedule": {"hours": [2], "minutes": [30], "weekDays": ["Monday"]},
            },
            "action": {"actionType": "CreateJob", "jobDefinition": JOB},
        }
    )

    assert document == {
        "display_name": "nightly",
        "trigger": {
            "type": "recurrence",
            "frequency": "Week",
            "interval": 2,
            "time_zone": "UTC",
            "start_time": "2026-01-01T00:00:00",
            "schedule": {"hours": [2], "minutes": [30], "week_days": ["Monday"]},
        },
        "create_job": {"type": "pipeline", "jobs": {"step": {"type": "command", "command": "true"}}},
    }


def test_a_cron_expression_and_a_job_that_there_is() -> None:
    job = {"jobType": "Pipeline", "sourceJobId": "/subscriptions/s/x/jobs/blue_sky"}
    trigger = {"triggerType": "Cron", "expression": "15 10 * * 1"}

    document = schedule_document({"trigger": trigger, "action": {"actionType": "CreateJob", "jobDefinition": job}})

    assert document == {"trigger": {"type": "cron", "expression": "15 10 * * 1"}, "create_job": "azureml:blue_sky"}


def test_what_is_no_schedule_of_jobs_is_refused_in_words() -> None:
    trigger = {"triggerType": "Cron", "expression": "15 10 * * 1"}
    with pytest.raises(NotSupported, match="CreateMonitor"):
        schedule_document({"trigger": trigger, "action": {"actionType": "CreateMonitor"}})
    with pytest.raises(InvalidInput, match="action"):
        schedule_document({"trigger": trigger})
    job = {"jobType": "Pipeline", "sourceJobId": "/jobs/blue_sky"}
    never = {"triggerType": "Recurrence", "frequency": "Day", "interval": 0}
    document = schedule_document({"trigger": never, "action": {"actionType": "CreateJob", "jobDefinition": job}})
    assert document["trigger"]["interval"] == 0, "for its reader to refuse"
