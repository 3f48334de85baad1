-- The leader names the nodes that may work for the job. That there is such a list is kept with the job, too (`chooses`),
-- where a node that looks for work reads it with the state.
--
-- KEYS  1 job  2 nodes
-- ARGV  1 term  2… nodes
-- Answer: 1, or 0 when another term has begun.

if redis.call('HGET', KEYS[1], 'term') ~= ARGV[1] then return 0 end
redis.call('DEL', KEYS[2])
if #ARGV > 1 then
  redis.call('SADD', KEYS[2], unpack(ARGV, 2))
  redis.call('HSET', KEYS[1], 'chooses', 1)
else
  redis.call('HDEL', KEYS[1], 'chooses')
end
return 1
