-- The leader lets nodes lease nothing more: the budget of the job is used up.
--
-- KEYS  1 job
-- ARGV  1 term
-- Answer: 1, or 0 when another term has begun.

if redis.call('HGET', KEYS[1], 'term') ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], 'used_up', 1)
return 1
