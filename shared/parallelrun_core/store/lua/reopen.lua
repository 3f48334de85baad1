-- A job that has ended goes on, in a new generation: queued again, nothing published, nothing leased. A leader that still
-- runs doesn't know that generation, so its term is over.
--
-- KEYS  1 job  2 events  3 leader  4 setbacks
-- ARGV  1 the generation
-- Answer {1, 'queued'} or {0, current state}.

local state = redis.call('HGET', KEYS[1], 'state')
if state and state ~= 'completed' and state ~= 'failed' and state ~= 'canceled' then return {0, state} end
redis.call('HSET', KEYS[1], 'state', 'queued', 'published', 0, 'reopened', ARGV[1])
redis.call('HDEL', KEYS[1], 'failure', 'ended', 'chooses', 'used_up', 'joining')
redis.call('DEL', KEYS[3], KEYS[4])
redis.call('HINCRBY', KEYS[1], 'version', 1)
if redis.call('HEXISTS', KEYS[1], 'term') == 1 then redis.call('HINCRBY', KEYS[1], 'term', 1) end
redis.call('PERSIST', KEYS[1])
redis.call('PERSIST', KEYS[2])
redis.call('XADD', KEYS[2], '*', 'event', 'state', 'data', cjson.encode({state = 'queued'}))
return {1, 'queued'}
