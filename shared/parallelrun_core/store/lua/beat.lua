-- A node's heartbeat in the list of nodes; an empty description takes the node off the list.
--
-- KEYS  1 nodes  2 nodes:alive
-- ARGV  1 node  2 description as JSON  3 lease, ms

if ARGV[2] == '' then
  redis.call('HDEL', KEYS[1], ARGV[1])
  redis.call('ZREM', KEYS[2], ARGV[1])
  return 0
end
local time = redis.call('TIME')
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
redis.call('ZADD', KEYS[2], time[1] * 1000 + math.floor(time[2] / 1000) + ARGV[3], ARGV[1])
return 1
