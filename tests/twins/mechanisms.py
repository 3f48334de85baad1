"""The mechanisms that twins disable by name: which functions and lines of scripts each of them is."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Final

from parallelrun_core.folder.control import NO_CONTROL
from tests.twins import stand_ins
from tests.twins.sabotage import Line, Step, always, nothing, nothing_later

_DEADLINE: Final = Step("parallelrun_agent.policy.lease_clock:LeaseClock.is_valid", always(True))

MECHANISMS: Final[dict[str, tuple[Line | Step, ...]]] = {
    # The token of a commit, the end of a lost session, and the rule that the first decision wins.
    "commit.fence": (
        Line("turn", "held[i] == stem", "true"),
        Line("turn", "mode ~= 'join' and not", "mode == 'leave' and not"),
        _DEADLINE,
        Step("parallelrun_core.folder.decided:FirstWins._is_late", always(False)),
    ),
    # The check that a leader's term still lasts, in all that it does on Redis.
    "lead.term": (
        *(
            Line(script, "~= ARGV[1] then", "== '' then")
            for script in ("assign", "close", "drop", "forget", "reap", "retire", "speculate", "transition")
        ),
        Step("parallelrun_core.store.leader_queue:LeaderQueue._check_term", nothing),
    ),
    # The end of an agent's workers before Redis lets others in.
    "lease.deadline": (_DEADLINE,),
    # The check that the rows of an answer are in its part file.
    "commit.check_rows": (
        Step("parallelrun_agent.workers.committer:Committer._with_rows", lambda committer, group: group),
    ),
    # The job of an idempotency key, and the request to cancel, as they are on the volume.
    "key.in_folder": (Step("parallelrun_api.submission.key_claims:KeyClaims.job_of", always(None)),),
    "key.whole": (Step("parallelrun_api.submission.key_claims:_digest", stand_ins.of_a_beginning),),
    "cancel.in_folder": (Step("parallelrun_core.folder.job_folder:JobFolder.has_cancel", always(False)),),
    # What keeps RQ from calling whatever an entry of its queues names.
    "rq.only_ours": (
        Step("parallelrun_core.store.rq.entries:Entry.requested_job_id", always("job_00000000000000000000")),
        Step("parallelrun_core.store.rq.entries:Entry.perform", stand_ins.as_rq_does),
    ),
    # That an entry which two workers have is done for both.
    "rq.twice": (Step("parallelrun_core.store.rq.workers:_Worker.handle_job_success", stand_ins.ended_as_rq_does),),
    # That the process of an entry which was enqueued again fails only its own.
    "rq.again": (Step("parallelrun_core.store.rq.workers:_Worker.handle_job_failure", stand_ins.failed_as_rq_does),),
    # That a process which goes on with other entries ends when it is told to, and that its parent knows what it ran.
    "rq.stop": (Step("parallelrun_core.store.rq.next_entries:_was_told_to_stop", always(False)),),
    "rq.death": (Step("parallelrun_core.store.rq.next_entries:RunningEntry.take", always("")),),
    # That a job which was deleted is gone at once.
    "api.deleted": (
        Step("parallelrun_api.people.access:Access.check_job_kept", nothing),
        Step("parallelrun_core.storage.readable_jobs:ReadableJobs._was_deleted", always(False)),
    ),
    # That another job which a request names is one that its person sees.
    "api.other_jobs": (Step("parallelrun_api.people.access:Access.sees_job", always(True)),),
    # That outputs which a path leads to, by whatever field, are those of the same person's jobs.
    "paths.only_owner": (Step("parallelrun_core.storage.readable_jobs:ReadableJobs._is_owned", always(True)),),
    # That people who see only their own share no answer of a list with others.
    "api.shared_answers": (Step("parallelrun_api.http.concurrency:_viewer", always(None)),),
    # Whose that is which a request of Azure's client is about.
    "azure.ownership": (Step("parallelrun_api.azure.access:_subject", always(None)),),
    # That showing an output reads that output alone.
    "api.output_only": (Step("parallelrun_api.routes.previews:_bounds", stand_ins.bounds_of_jobs),),
    # The users that workers are.
    "worker.users": (Step("parallelrun_agent.settings:AgentSettings.worker_user", stand_ins.agents_own),),
    # The rights with which an agent works where a job's code can write.
    "worker.acting": (
        Step("parallelrun_agent.users.worker_user:WorkerUser.acting", stand_ins.as_itself),
        # Or workers couldn't read what is the agent's then.
        Step("parallelrun_agent.workers.worker_start:_make_private", Path.touch),
    ),
    # What no worker can be: the user of the services.
    "worker.not_services": (Step("parallelrun_agent.agent:check_apart", nothing),),
    # The home of the user that an agent becomes.
    "agent.own_home": (Step("parallelrun_agent.main:home_of", always("/root")),),
    # That no job can put a configuration into the home of its agent.
    "agent.closed_home": (
        Step("parallelrun_agent.main:home_of", always("/tmp")),
        Step("parallelrun_agent.main:keep_to_closed_home", nothing),
    ),
    # That workers of a job with more than its part of the slots are taken back.
    "agent.take_back": (Step("parallelrun_agent.jobs.slot_sharing:to_take_back", always([])),),
    "quota.of_jobs": (
        Step("parallelrun_api.people.quotas:Quotas.check", nothing),
        Step("parallelrun_api.people.quotas:Quotas.reserved", lambda *_, **__: nullcontext()),
    ),
    # That requests which come at the same moment count each other.
    "quota.reserved": (Step("parallelrun_api.people.quotas:Quotas.reserved", lambda *_, **__: nullcontext()),),
    # That only admins let a job go on which an admin has paused.
    "job.pause_by_admin": (Step("parallelrun_api.submission.controlling:_needs_admin", always(False)),),
    # What tells Redis again which jobs are paused.
    "job.orders": (
        Step("parallelrun_core.intake.reopening:effective_control", always(NO_CONTROL)),
        Step("parallelrun_core.intake.launching:effective_control", always(NO_CONTROL)),
        Step("parallelrun_master.leader.control_watch:effective_control", always(NO_CONTROL)),
    ),
    # That nodes begin nothing more of a job whose budget is used up.
    "job.budget": (
        Line("turn", "state == 'processing' and job[4]", "state == ''"),
        Line("peek", "job[3] or job[4]", "job[3]"),
    ),
    # The answer to a call of a service that could never begin.
    "permits.refusal": (Step("parallelrun_agent.permits.server:PermitServer._refusal", always("")),),
    # The end of a node that everybody has left.
    "agent.alone": (Step("parallelrun_agent.agent:Agent._check_alone", nothing),),
    # What keeps the memory of services from other processes of their user.
    "service.hidden": (Step("parallelrun_core.service.process:hide_memory", nothing),),
    # The comparison of stored code with its name.
    "code.checked": (Step("parallelrun_core.code.stored:check_snapshot", nothing),),
    # What is left out of the environment of an installer.
    "installer.environment": (Step("parallelrun_core.service.children:variables_for", stand_ins.everything),),
    # The user that installs packages, and what it never runs of these.
    "environments.builder": (Step("parallelrun_agent.environments.recipe:Recipe.builder", stand_ins.agents_own),),
    "environments.compile": (
        Step("parallelrun_agent.environments.job_python:build_command", stand_ins.building_carelessly("run")),
    ),
    # That a package can't replace the interpreter of its environment, and nothing of it is run.
    "environments.interpreter": (
        Step("parallelrun_agent.environments.job_python:build_command", stand_ins.building_carelessly("replace")),
    ),
    # That no package runs its setup where the installer has credentials.
    "environments.credentials": (
        Step("parallelrun_agent.environments.job_python:build_command", stand_ins.building_carelessly("trust")),
    ),
    # What keeps the files of packages below their environment.
    "environments.beneath": (
        Step("parallelrun_agent.environments.job_python:build_command", stand_ins.building_carelessly("unpack")),
    ),
    # What an agent leaves out of its workers' variables.
    "worker.variables": (Step("parallelrun_agent.workers.inherited:without_installers_secrets", dict),),
    # That the path of a command's input is no part of a program.
    "command.words": (
        Step("parallelrun_core.spec.shell_words:_Words._refusing_place", always("")),
        Step("parallelrun_core.spec.shell_words:_Words._is_part_of_text", always(False)),
    ),
    # That values of inputs are in variables, and no text of a command.
    "command.variables": (Step("parallelrun_core.spec.command:without_absent_parts", stand_ins.with_values_before),),
    # That a path is no text of a command unless it is plain.
    "command.plain": (Step("parallelrun_core.spec.shell_words:_is_plain", always(True)),),
    # The mark of an environment that its builder can't make.
    "environments.marked": (Step("parallelrun_agent.environments.job_python:is_ready", stand_ins.is_marked_inside),),
    # The comparison of a leader's books with Redis.
    "lead.watchdog": (Step("parallelrun_master.leader.watchdog:Watchdog.check", always(False)),),
    # The search for all rows that are not what was committed, once one of them is found.
    "concatenate.lost_rows": (Step("parallelrun_concatenator.segments:SegmentTable.lost", always(())),),
    # What tells damage from the place where a writer died.
    "disk.tell_damage": (Step("parallelrun_core.folder.record_log:RecordReader._pass_over", always(False)),),
    # The check of rows that come from another job, or from a journal.
    "disk.check_rows": (Step("parallelrun_core.folder.takeover:has_rows", always(True)),),
    # What the facade for Azure ML's client makes of the API token, and how it takes names of blobs and folders of code.
    "azure.tokens": (Step("parallelrun_api.azure.credentials:is_valid", always(True)),),
    "azure.signatures": (Step("parallelrun_api.azure.credentials:allows", always(True)),),
    "azure.artifacts": (Step("parallelrun_core.azure.v2_command:CommandReader._mark_artifacts", nothing),),
    "azure.names": (Step("parallelrun_api.azure.blobs.routes:checked_blob", stand_ins.as_it_came),),
    # That nobody writes into an upload of somebody else.
    "azure.uploads": (Step("parallelrun_api.azure.blobs.owners:UploadOwners.claim", always(True)),),
    "azure.codes": (Step("parallelrun_api.azure.whole_component:WholeComponents.check_code", nothing),),
    # The check of the Host header.
    "api.host": (Step("parallelrun_api.http.auth:Guard._check_host", nothing),),
    # The header without which a browser's cookie changes nothing.
    "api.page_header": (Step("parallelrun_api.http.sessions:Sessions.admit", stand_ins.by_the_cookie_alone),),
    # That a session ends on the server when its browser signs out, and a link is for one browser.
    "api.signed_out": (Step("parallelrun_api.http.ended_sessions:EndedSessions.has", always(False)),),
    # That a stream ends with them, too, and with its token.
    "api.streams_end": (Step("parallelrun_api.http.auth:Admission.has_ended", nothing_later),),
    "api.links_once": (Step("parallelrun_api.http.sessions:Sessions.redeemed", stand_ins.for_everybody),),
    # That who is removed from the file of tokens has none any more.
    "api.tokens_anew": (Step("parallelrun_api.http.named_tokens:NamedTokens._refresh", nothing),),
    # That not all who may run jobs may define computes.
    "api.operators": (Step("parallelrun_api.http.named_tokens:Operators.check", nothing),),
    # Whose a thing is that somebody changes.
    "people.owners": (Step("parallelrun_api.people.person:Person.may_change", always(True)),),
    # That names in a zip are paths below its folder.
    "zips.names": (Step("parallelrun_core.code.snapshots:relative_parts", stand_ins.without_what_leads_up),),
    # That a zip of code has files only, and not too much of them.
    "zips.members": (Step("parallelrun_core.code.snapshots:_members_of", stand_ins.members_as_they_are),),
    # That people change only what is their own.
    "api.ownership": (Step("parallelrun_api.people.access:Access.check", nothing_later),),
    # That tokens below the root folder are those that the API has put there.
    "api.sealed_tokens": (Step("parallelrun_core.documents.codecs:FieldsCodec._is_sealed", always(True)),),
    # That a provisioner starts nodes of the kinds that it was told, and of no others.
    "computes.kinds": (
        Step("parallelrun_provisioner.settings:ProvisionerSettings.serves", always(True)),
        Step("parallelrun_core.store.provisioning:Provisioning.kinds", always([])),
    ),
    # The rule about the paths of jobs, wherever it is asked.
    "paths.rule": (Step("parallelrun_core.storage.path_rule:PathRule.is_open", always(True)),),
    # That what a job names is looked at where it is once it is open, and opened beneath what was opened before.
    "paths.beneath": (
        Step("parallelrun_core.storage.path_rule:PathRule.check_opened", nothing),
        Step("parallelrun_core.storage.local:open_ordinary", stand_ins.opened_after_a_moment),
        Step("parallelrun_core.code.folder:_Walk._opened", stand_ins.opened_by_name),
        Step("parallelrun_core.storage.local.new_file:_opened", stand_ins.created_by_name),
    ),
    # That only ordinary files are opened, and are data.
    "paths.ordinary": (
        Step("parallelrun_core.storage.local:open_ordinary", stand_ins.opened_whatever_it_is),
        Step("parallelrun_core.storage.local.listing:_may_hold_data", always(True)),
    ),
    # That links of processes are not followed.
    "paths.of_the_kernel": (Step("parallelrun_core.storage.path_rule:resolve", stand_ins.with_all_links_followed),),
    # That an ignore file is one of its folder.
    "paths.ignore_file": (Step("parallelrun_core.code.ignore_file:opened_path", always(Path("/"))),),
    # That a Dockerfile names nothing that its Engine would fetch from the network of its machine.
    "dockerfiles.checked": (Step("parallelrun_api.submission.build_contexts:check_dockerfile", nothing),),
    # That requirements are made anew from what was read of them.
    "requirements.written": (
        Step("parallelrun_core.spec.environment:parse_requirement", stand_ins.line_as_it_came),
        Step("parallelrun_core.spec.conda:parse_requirement", stand_ins.line_as_it_came),
    ),
    # The look at what a Parquet file says of its columns, before that is asked for.
    "tables.footers": (
        Step("parallelrun_master.planning.formats.parquet:check_footer", nothing),
        Step("parallelrun_worker.tables.parquet_pages:check_footer", nothing),
        Step("parallelrun_worker.tables.parquet_reader:check_footer", nothing),
    ),
    # That the schema of an Avro file may be anything.
    "tables.schemas": (Step("parallelrun_master.planning.formats.avro:_columns", stand_ins.names_that_are_there),),
    # That what builders have downloaded goes with their environments.
    "environments.pruned": (
        Step("parallelrun_agent.environments.builder_home:move_away", always(False)),
        Step("parallelrun_agent.environments.builder_home:unused", lambda _: nullcontext(False)),
    ),
    # The rule about paths in the processes that read tables with the rights of a master.
    "paths.bounds": (Step("parallelrun_worker.tables.table_format:bounded", always(open)),),
    # That a file of an output has no other name elsewhere.
    "paths.own_files": (Step("parallelrun_api.views.files:_is_shared", always(False)),),
    # What makes words of users visible, and no formulas of a spreadsheet.
    "words.visible": (
        Step("parallelrun_core.untrusted.sanitize:_shown", lambda suspect: suspect[0]),
        Step("parallelrun_core.untrusted.sanitize:_is_formula", always(False)),
    ),
    # The page tokens of lists: an API without them answers as its contract doesn't say.
    "contract.tokens": (Step("parallelrun_api.http.paging:decode_token", lambda token, kind, length: [""].pop(1)),),
    # What hides the values of a job's variables and secrets in reports of errors.
    "secrets.mask": (Step("parallelrun_core.wire.masking:Mask.add", nothing),),
    # What shows a leader that an outcome comes from a session of its job.
    "outcomes.sealed": (Step("parallelrun_core.store.seals:Seals.objection", always("")),),
    # What a service may not do on Redis.
    "redis.roles": (Step("parallelrun_core.store.roles:rules", always(["~*", "&*", "+@all"])),),
    # The end of what everybody may do on Redis who reaches it.
    "redis.passwords": (Step("parallelrun_core.store.roles:_nobody", always("user default on nopass ~* &* +@all")),),
    # The limits on connections: their number, and how slow they may be.
    "http.connections": (
        Step("parallelrun_api.http.connections:Connections.opened", nothing),
        Step("parallelrun_api.http.connections:Connections.sweep", nothing),
    ),
    # The end of reading when a request was refused, and short reads before that.
    "http.deaf": (
        Step("parallelrun_api.http.wire:BoundedHttp._read_at_most", nothing),
        Step("parallelrun_api.http.wire:BoundedHttp.on_response_complete", stand_ins.as_uvicorn_does),
    ),
    # The limit on bodies that are not submissions.
    "http.bounded_bodies": (Step("parallelrun_api.http.requests:_bounded", lambda receive: receive),),
    # The few long lists at once, and what is remembered between them.
    "http.lanes": (
        Step("parallelrun_api.http.concurrency:ConcurrencyLimiter.run", stand_ins.in_any_thread),
        Step("parallelrun_api.views.folder_names:FolderNames._stretch", stand_ins.looked_up_anew),
    ),
    # The limit on lines that are looked at for a page of logs.
    "http.lines_of_logs": (
        Step("parallelrun_api.views.merged_logs:first_of", lambda text, _: text),
        Step("parallelrun_api.views.merged_logs:last_of", lambda text, _: text),
    ),
    # The audit log.
    "http.audit": (Step("parallelrun_api.http.audit:Audit.answered", nothing),),
    # The limit on event streams.
    "http.streams": (Step("parallelrun_api.context:Context.check_streams", nothing),),
    # That an outcome waits for the files of its run() to be in their store.
    "uploads.awaited": (
        Step("parallelrun_agent.policy.uploading_machine:UploadingJobMachine._keep", stand_ins.without_its_uploads),
    ),
    # The condition under which an object gets its name.
    "uploads.condition": (
        Step(
            "parallelrun_core.storage.objects.uploads.multipart:MultipartObject._complete", stand_ins.whatever_is_there
        ),
    ),
    # The patience with a store that doesn't answer, or has too much to do.
    "staging.asked_again": (
        Step("parallelrun_agent.staging.stager:Stager._try_later", stand_ins.failed_at_once),
        Step("parallelrun_core.storage.objects.clients:_retries", stand_ins.without_retries),
    ),
    # What removes from a node's cache what was linked there for the jobs of a dead agent.
    "staging.abandoned": (Step("parallelrun_agent.staging.place:_remove_if_abandoned", nothing),),
    # What makes two masters agree on what becomes of a time: the file that is written once, and the id of the job.
    "fire.once": (
        Step("parallelrun_core.schedules.fires:FireLog.decide", stand_ins.decided_by_each),
        Step("parallelrun_core.schedules.fires:FireLog.is_launched", always(False)),
        Step("parallelrun_core.schedules.records:Revision.job_id", stand_ins.some_job_id),
    ),
    # What makes the job upon which a master has decided that was killed then.
    "fire.completed": (Step("parallelrun_master.schedules.firing:Firing._complete_last", nothing),),
    # What makes the end of a job known to masters that still have to tell of it.
    "notices.owed": (Step("parallelrun_master.leader.finishing:enqueue", nothing),),
    # That a secret goes to no other bucket than that of the datastore which has named it first.
    "datastores.bound": (Step("parallelrun_core.datastores.bound_secrets:BoundSecrets.check", nothing),),
    # That URLs and keys are read in one way before they are compared, and endpoints have no path.
    "urls.canonical": (
        Step("parallelrun_core.untrusted.canonical:check_key", nothing),
        Step("parallelrun_core.datastores.definition:check_key", nothing),
        Step("parallelrun_core.datastores.definition:canonical_origin", stand_ins.without_its_end),
    ),
    # That nobody names an address where only machines have business.
    "urls.machines": (
        Step("parallelrun_core.storage.url_flaws:is_literal_of", always(False)),
        Step("parallelrun_core.datastores.definition:is_literal_of", always(False)),
    ),
    # That the variables of a job are those of its workers alone.
    "agent.own_variables": (Step("parallelrun_agent.workers.plans:Mask", stand_ins.taking_over_variables),),
    # That no more of a store's answer is told than its words for people.
    "stores.words": (Step("parallelrun_core.storage.objects.trouble:_words", stand_ins.all_that_was_said),),
    # That a web server leads nobody to another one, and no name to this machine or a cloud's metadata.
    "web.redirects": (Step("parallelrun_core.storage.objects.web:_next_place", stand_ins.wherever_it_says),),
    # That an object store leads nobody to another server.
    "stores.redirects": (
        Step("parallelrun_core.storage.objects.datastores:staying_at", lambda url, options, *_: options),
        Step("parallelrun_core.storage.objects.clients:staying_at", lambda url, options, *_: options),
    ),
    "web.addresses": (Step("parallelrun_core.storage.objects.web:refusal_to_read", always("")),),
    # What keeps notices from addresses where only machines themselves have business.
    "notices.addresses": (Step("parallelrun_master.destinations.notices.sending:refusal", always("")),),
    # What keeps services from filling a disk to the last byte.
    "disk.floor": (Step("parallelrun_core.folder.disk_floor:DiskFloor.problem", always("")),),
    # What makes the end of a job known to masters that still have to send its trace.
    "traces.owed": (Step("parallelrun_master.destinations.traces:is_wanted", always(False)),),
    # What hides secrets in traces.
    "traces.masked": (Step("parallelrun_core.wire.masking:Mask.printable", lambda _, text: text),),
    # The library for traces, which is an extra: without it, all else is as ever.
    "traces.library": (Step("parallelrun_core.tracing.switch:_is_there", always(False)),),
    # What lets a turn of a pipeline go on for which something happens just when it ends.
    "turns.wakes": (Line("lead", "if (redis.call('HGET', KEYS[1], 'wakes') or '0') ~= ARGV[5] then return 2 end", ""),),
    # What makes two turns that start a step start the same job.
    "steps.derived": (Step("parallelrun_master.pipelines.steps:job_id_from", stand_ins.some_job_id),),
    # What makes them do what one of them has decided.
    "steps.first": (Step("parallelrun_core.documents.file_store:write_once", stand_ins.replacing),),
    # What tells which turns of a loop there are, whoever goes on with it.
    "loops.decided": (Step("parallelrun_core.pipelines.turns:_decided", always([])),),
    # What ends a turn that was paused until another one began.
    "turns.fenced": (Step("parallelrun_master.pipelines.pipeline_run:PipelineRun._check_turn", nothing),),
    # What tells the end of an earlier generation from that of the present one.
    "lead.end_of_this": (
        Step("parallelrun_master.leader.leader:check_end", nothing),
        Step("parallelrun_master.pipelines.pipeline_run:check_end", nothing),
    ),
    # What has a step run anew when what it was made of has changed.
    "steps.upon": (Step("parallelrun_core.pipelines.standing:is_upon", always(True)),),
    # What tells the contents of two inputs apart.
    "reuse.content": (Step("parallelrun_master.pipelines.reuse:content_of", always("the same")),),
    # What tells what a step has made from what another one has put in its place.
    "reuse.outputs": (Step("parallelrun_master.pipelines.reuse:content_of_outputs", always("the same")),),
    # What keeps nodes from jobs for which others have been chosen.
    "nodes.chosen": (Line("peek", "others and -1 or", ""),),
    # That there is such a list before anything is published.
    "nodes.first": (Step("parallelrun_master.leader.node_watch:NodeWatch.choose", nothing),),
    # That the first timeout goes on until a mini-batch is run.
    "stall.first_run": (Step("parallelrun_master.policy.stall_watch:StallWatch.published", stand_ins.as_if_run),),
    # What makes timeouts stand still while others hold the slots.
    "stall.waits": (Step("parallelrun_master.policy.stall_watch:StallWatch.stood_still", nothing),),
    # That a job fails when its command has failed.
    "command.decides": (Step("parallelrun_master.policy.completion:over_threshold", nothing),),
    # The end of what a dead worker has left behind outside its process group.
    "worker.end_orphans": (
        Step("parallelrun_agent.workers.orphans:Orphans.reap", nothing),
        Step("parallelrun_agent.workers.survivors:_is_left_behind", always(False)),
    ),
}
