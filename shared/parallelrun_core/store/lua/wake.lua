-- Something has happened that a pipeline waits for. The wake is counted, so that a turn that is just about to end sees it.
--
-- KEYS  1 job  2 leader
-- Answer: the term of its last turn, if another one is to be asked for; -1 if none is: one is under way, or will be.

if redis.call('HEXISTS', KEYS[1], 'state') == 0 then return -1 end
redis.call('HINCRBY', KEYS[1], 'wakes', 1)
local leader = redis.call('GET', KEYS[2])
if leader and leader ~= 'waiting' then return -1 end
return tonumber(redis.call('HGET', KEYS[1], 'term') or 0)
