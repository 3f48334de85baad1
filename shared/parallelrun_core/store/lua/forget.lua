-- Drops entries that are in the leader's decision log. A leader whose term is over is refused, because its successor may
-- not have read them.
--
-- KEYS  1 job  2 outcomes
-- ARGV  1 term  2 the lowest id to keep
-- Answer: 1, or 0 when another term has begun.

if redis.call('HGET', KEYS[1], 'term') ~= ARGV[1] then return 0 end
redis.call('XTRIM', KEYS[2], 'MINID', ARGV[2])
return 1
