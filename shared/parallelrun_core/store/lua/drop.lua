-- The leader has recorded that these are given up.
--
-- KEYS  1 job  2 given_up  3 messages
-- ARGV  1 term  2… ids
-- Answer: 1, or 0 when another term has begun.

if redis.call('HGET', KEYS[1], 'term') ~= ARGV[1] then return 0 end
for i = 2, #ARGV do
  redis.call('HDEL', KEYS[2], ARGV[i])
  redis.call('HDEL', KEYS[3], ARGV[i])
end
return 1
