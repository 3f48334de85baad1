"""A schedule is made, disabled, enabled, triggered and deleted."""

import time

from azure.ai.ml import MLClient, load_job
from azure.ai.ml.constants import TimeZone
from azure.ai.ml.entities import CronTrigger, JobSchedule, RecurrencePattern, RecurrenceTrigger
from azure.core.exceptions import ResourceNotFoundError
from azure.identity import DefaultAzureCredential

ml_client = MLClient.from_config(credential=DefaultAzureCredential())
name = f"nightly{time.time_ns()}"

recurrence = RecurrenceTrigger(
    frequency="day", interval=1, schedule=RecurrencePattern(hours=2, minutes=[30]), time_zone=TimeZone.UTC
)
job = load_job("pipeline.yml")
job.jobs["prepare"].environment_variables = {"KEY": "value"}
schedule = JobSchedule(name=name, trigger=recurrence, create_job=job)
schedule = ml_client.schedules.begin_create_or_update(schedule).result()
assert schedule.is_enabled
assert name in [each.name for each in ml_client.schedules.list()]

ml_client.schedules.begin_disable(name).result()
assert not ml_client.schedules.get(name).is_enabled
assert name not in [each.name for each in ml_client.schedules.list()]
assert ml_client.schedules.begin_enable(name).result().is_enabled

if hasattr(ml_client.schedules, "trigger"):
    made = ml_client.schedules.trigger(name)
    ml_client.jobs.stream(made.job_name)
    assert ml_client.jobs.get(made.job_name).status == "Completed"
    assert [each.name for each in ml_client.jobs.list(scheduled_job_name=name)] == [made.job_name]
    assert made.job_name in [each.name for each in ml_client.jobs.list(schedule_defined=True)]
    assert made.job_name not in [each.name for each in ml_client.jobs.list(schedule_defined=False)]
try:
    list(ml_client.jobs.list(scheduled_job_name="no-such-schedule"))
except ResourceNotFoundError as error:
    assert "There is no schedule 'no-such-schedule'" in str(error), str(error)
else:
    raise AssertionError("jobs of a schedule that nobody has made")

cron = JobSchedule(
    name=name, trigger=CronTrigger(expression="15 10 * * 1", time_zone="UTC"), create_job=load_job("pipeline.yml")
)
assert ml_client.schedules.begin_create_or_update(cron).result().trigger.expression == "15 10 * * 1"

ml_client.schedules.begin_disable(name).result()
ml_client.schedules.begin_delete(name).result()
try:
    ml_client.schedules.get(name)
except ResourceNotFoundError:
    pass
else:
    raise AssertionError("a schedule that was deleted")
