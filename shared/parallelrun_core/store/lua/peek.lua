-- What a node reads when it looks for work: the active jobs, oldest first, and the state of those that it knows.
--
-- KEYS  1 jobs:active, then job, ready and sessions of each job that the node believes to be active
-- Answer {active jobs, [state, how many are ready, how many sessions work for it]...}

local answer = {redis.call('ZRANGE', KEYS[1], 0, -1)}
for i = 2, #KEYS, 3 do
  answer[#answer + 1] = redis.call('HGET', KEYS[i], 'state')
  answer[#answer + 1] = redis.call('LLEN', KEYS[i + 1])
  answer[#answer + 1] = redis.call('ZCARD', KEYS[i + 2])
end
return answer
