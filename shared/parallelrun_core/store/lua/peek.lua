-- What a node reads when it looks for work: the active jobs, oldest first, and the state of those that it knows.
--
-- KEYS  1 jobs:active, then job, ready, sessions and nodes of each job that the node believes to be active
-- ARGV  1 node
-- Answer {active jobs, [state, how many are ready, how many sessions work for it]...}; ready is -1 when other nodes have
-- been chosen for the job, it is paused, or its budget is used up.

local answer = {redis.call('ZRANGE', KEYS[1], 0, -1)}
for i = 2, #KEYS, 4 do
  local job = redis.call('HMGET', KEYS[i], 'state', 'chooses', 'paused', 'used_up')
  -- `nodes` is only asked for jobs that have such a list.
  local others = job[3] or job[4] or (job[2] and redis.call('SISMEMBER', KEYS[i + 3], ARGV[1]) == 0)
  answer[#answer + 1] = job[1]
  answer[#answer + 1] = others and -1 or redis.call('LLEN', KEYS[i + 1])
  answer[#answer + 1] = redis.call('ZCARD', KEYS[i + 2])
end
return answer
