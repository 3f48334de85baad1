-- After a restart of Redis, which may have forgotten the last moments: an agent names what it holds, and all that Redis
-- believes it to hold beyond that goes back, uncharged.
--
-- KEYS  1 ready  2 leases  3 twins
-- ARGV  1 session, then every token that the agent holds
-- Answer: how many went back.

local mine = {}
for i = 2, #ARGV do mine[ARGV[i]] = true end
local prefix = ARGV[1] .. '/'
local twins = redis.call('HGETALL', KEYS[3])
for i = 1, #twins, 2 do -- a first delivery that has ended: the second one goes on alone
  local stem = twins[i + 1]
  if stem:sub(1, #prefix) == prefix and not mine[stem .. twins[i]] then redis.call('HDEL', KEYS[3], twins[i]) end
end
local leases = redis.call('HGETALL', KEYS[2])
local back = 0
for i = 1, #leases, 2 do
  local stem = leases[i + 1]
  if stem:sub(1, #prefix) == prefix and not mine[stem .. leases[i]] then
    local first = redis.call('HGET', KEYS[3], leases[i])
    if first then -- the first delivery of it goes on alone
      redis.call('HSET', KEYS[2], leases[i], first)
      redis.call('HDEL', KEYS[3], leases[i])
    else
      redis.call('HDEL', KEYS[2], leases[i])
      redis.call('LPUSH', KEYS[1], leases[i])
    end
    back = back + 1
  end
end
return back
