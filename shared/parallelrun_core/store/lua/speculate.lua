-- The leader delivers stragglers a second time. Whichever delivery commits first wins; the other one is refused.
--
-- KEYS  1 job  2 ready  3 leases  4 twins
-- ARGV  1 term, then id and stem of the token of each delivery that shall get a twin
-- Answer: how many did, or -1 when another term has begun.

if redis.call('HGET', KEYS[1], 'term') ~= ARGV[1] then return -1 end
local made = 0
for i = 2, #ARGV, 2 do
  local id, stem = ARGV[i], ARGV[i + 1]
  if redis.call('HGET', KEYS[3], id) == stem and redis.call('HEXISTS', KEYS[4], id) == 0 then
    redis.call('HSET', KEYS[4], id, stem)
    redis.call('HDEL', KEYS[3], id)
    redis.call('LPUSH', KEYS[2], id)
    made = made + 1
  end
end
return made
