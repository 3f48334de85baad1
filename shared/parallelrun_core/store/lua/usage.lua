-- Adds what a node's workers have used for each owner, and tells what owners have used of late.
--
-- KEYS  1 usage  2 usage:weeks
-- ARGV  1 half-life, s  2 week, such as 2026-W48, and for each owner: name, slot-seconds, GPU-seconds
-- Answer [owner, slot-seconds as they have decayed by now]... of all owners.

local time = redis.call('TIME')
local now = time[1] + time[2] / 1000000
local function decayed(text)
  local value, at = string.match(text, '^(%S+) (%S+)$')
  return value * 0.5 ^ (math.max(0, now - at) / ARGV[1])
end
local function add(field, amount)
  local before = redis.call('HGET', KEYS[2], field) or 0
  redis.call('HSET', KEYS[2], field, string.format('%.3f', before + amount))
end
for i = 3, #ARGV, 3 do
  local owner = ARGV[i]
  local before = redis.call('HGET', KEYS[1], owner)
  local value = (before and decayed(before) or 0) + ARGV[i + 1]
  redis.call('HSET', KEYS[1], owner, string.format('%.3f %.3f', value, now))
  add(ARGV[2] .. ' slots ' .. owner, ARGV[i + 1])
  if tonumber(ARGV[i + 2]) > 0 then add(ARGV[2] .. ' gpus ' .. owner, ARGV[i + 2]) end
end
local answer = redis.call('HGETALL', KEYS[1])
for i = 2, #answer, 2 do answer[i] = string.format('%.3f', decayed(answer[i])) end
return answer
