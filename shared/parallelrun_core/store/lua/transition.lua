-- A job's move from one state to another: a compare-and-set, so of two racing callers one wins. A leader whose term is
-- over is refused: what went wrong on its side says nothing about a job that another process leads.
--
-- KEYS  1 job  2 outcomes  3 events
-- ARGV  1 the leader's term, or '' for any other caller  2 new state  3 failure as JSON, or ''  4… the states it may leave
-- Answer {1, new state} or {0, current state}; the current state is '' when there is no such job. {-1, current state} when
-- another term has begun.

local present = redis.call('HGET', KEYS[1], 'state')
if not present then return {0, ''} end
if ARGV[1] ~= '' and redis.call('HGET', KEYS[1], 'term') ~= ARGV[1] then return {-1, present} end
for i = 4, #ARGV do
  if ARGV[i] == present then
    redis.call('HSET', KEYS[1], 'state', ARGV[2])
    redis.call('HINCRBY', KEYS[1], 'version', 1)
    if ARGV[3] ~= '' then redis.call('HSET', KEYS[1], 'failure', ARGV[3]) end
    redis.call('XADD', KEYS[2], '*', 'state', ARGV[2])
    redis.call('XADD', KEYS[3], '*', 'event', 'state', 'data', cjson.encode({state = ARGV[2]}))
    return {1, ARGV[2]}
  end
end
return {0, present}
