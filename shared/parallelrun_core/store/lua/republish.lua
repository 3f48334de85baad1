-- The leader puts mini-batches up again that are published and not decided, and that nobody holds or could lease. Each is
-- checked here once more: a result may just have come, or an agent have given it back.
--
-- KEYS  1 job  2 ready  3 messages  4 leases  5 sessions  6 outcomes  7 twins  8 delayed
-- ARGV  1 term  2 the last entry of the stream that was read  3… id and message of each; '': as Redis has it
-- Answer: how many were put up, -1 when another term has begun, -2 when there are results that the leader hasn't read.

if redis.call('HGET', KEYS[1], 'term') ~= ARGV[1] then return -1 end
if redis.call('HGET', KEYS[1], 'state') ~= 'processing' then return 0 end
local last = redis.call('XREVRANGE', KEYS[6], '+', '-', 'COUNT', 1)
if #last > 0 and last[1][1] ~= ARGV[2] then return -2 end

local function is_held(key, id)
  local stem = redis.call('HGET', KEYS[key], id)
  return stem and redis.call('ZSCORE', KEYS[5], stem:match('^[^/]*'))
end

local put = 0
for i = 3, #ARGV, 2 do
  local id, message = ARGV[i], ARGV[i + 1]
  local is_known = redis.call('HEXISTS', KEYS[3], id) == 1
  local is_free = not is_held(4, id) and not is_held(7, id) and not redis.call('ZSCORE', KEYS[8], id)
  if is_free and (not is_known or not redis.call('LPOS', KEYS[2], id)) and (is_known or message ~= '') then
    if not is_known then redis.call('HSET', KEYS[3], id, message) end
    redis.call('HDEL', KEYS[4], id)
    redis.call('HDEL', KEYS[7], id)
    redis.call('LPUSH', KEYS[2], id)
    put = put + 1
  end
end
return put
