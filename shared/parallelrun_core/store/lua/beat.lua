-- A node's heartbeat in the list of nodes; an empty description takes the node off the list. A node that has been silent
-- for a day will hardly come back under its name: containers have a new one each time.
--
-- KEYS  1 nodes  2 nodes:alive  3 nodes:check  4 nodes:draining  5 nodes:stacks
-- ARGV  1 node  2 description as JSON  3 lease, ms  4 session of its agent
-- Answer {the last request that all nodes check themselves; empty: there is none, 1 if the node is to leave, requests
-- for the stacks of jobs …}

if ARGV[2] == '' then
  redis.call('HDEL', KEYS[1], ARGV[1])
  redis.call('ZREM', KEYS[2], ARGV[1])
  redis.call('SREM', KEYS[4], ARGV[4])
  return {'', 0}
end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
for _, lost in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now - 86400000, 'LIMIT', 0, 1000)) do
  local described = redis.call('HGET', KEYS[1], lost)
  if described then redis.call('SREM', KEYS[4], cjson.decode(described).session or '') end
  redis.call('HDEL', KEYS[1], lost)
  redis.call('ZREM', KEYS[2], lost)
end
-- If the clock was set back, nodes would stay alive for as long as it jumped. Nodes may have different leases.
local far = redis.call('ZRANGEBYSCORE', KEYS[2], '(' .. (now + 2 * ARGV[3]), '+inf', 'WITHSCORES', 'LIMIT', 0, 1000)
for i = 1, #far, 2 do
  local described = redis.call('HGET', KEYS[1], far[i])
  local lease = described and cjson.decode(described).lease_ms
  if lease and tonumber(far[i + 1]) > now + 2 * lease then redis.call('ZADD', KEYS[2], now + lease, far[i]) end
end
if redis.call('EXISTS', KEYS[4]) == 1 then
  -- The agent that was drained under this name was killed before it could leave.
  local described = redis.call('HGET', KEYS[1], ARGV[1])
  local before = described and cjson.decode(described).session or ''
  if before ~= '' and before ~= ARGV[4] then redis.call('SREM', KEYS[4], before) end
end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
redis.call('ZADD', KEYS[2], now + ARGV[3], ARGV[1])
local leave = redis.call('SISMEMBER', KEYS[4], ARGV[1])
if leave == 0 then leave = redis.call('SISMEMBER', KEYS[4], ARGV[4]) end
local asked = {redis.call('GET', KEYS[3]) or '', leave}
local stacks = redis.call('HGETALL', KEYS[5])
for i = 1, #stacks, 2 do
  if cjson.decode(stacks[i + 1]).until_ms < now then
    redis.call('HDEL', KEYS[5], stacks[i])
  else
    asked[#asked + 1] = stacks[i + 1]
  end
end
return asked
