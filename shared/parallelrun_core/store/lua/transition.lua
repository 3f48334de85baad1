-- A job's move from one state to another: a compare-and-set, so that of two who race one wins.
--
-- KEYS  1 job  2 outcomes  3 events
-- ARGV  1 new state  2 failure as JSON, or ''  3… the states it may leave
-- Answer {1, new state} or {0, present state}; the present state is '' when there is no such job.

local present = redis.call('HGET', KEYS[1], 'state')
if not present then return {0, ''} end
for i = 3, #ARGV do
  if ARGV[i] == present then
    redis.call('HSET', KEYS[1], 'state', ARGV[1])
    redis.call('HINCRBY', KEYS[1], 'version', 1)
    if ARGV[2] ~= '' then redis.call('HSET', KEYS[1], 'failure', ARGV[2]) end
    redis.call('XADD', KEYS[2], '*', 'state', ARGV[1])
    redis.call('XADD', KEYS[3], '*', 'event', 'state', 'data', cjson.encode({state = ARGV[1]}))
    return {1, ARGV[1]}
  end
end
return {0, present}
