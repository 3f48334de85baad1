-- Reserves one of the jobs that an owner may have, unless as many have not ended or are reserved.
--
-- KEYS  1 reservations of the owner  2 submissions of this minute
-- ARGV  1 job  2 owner  3 changes, as the hash had it before the caller read which jobs have not ended
--       4 most jobs  5 most submissions in a minute; -1: any number  6 seconds that a reservation lasts
--       7 seconds that keys last  8... the owner's jobs that have not ended
-- Answer {what, count}; what: 'reserved', 'changed' (the caller is to read again), 'jobs' or 'submissions' (too many).

local now = redis.call('TIME')[1]
local jobs = {}
local count = 0
for i = 8, #ARGV do
  jobs[ARGV[i]] = true
  count = count + 1
end
local reserved = redis.call('HGETALL', KEYS[1])
local changes = ''
for i = 1, #reserved, 2 do
  if reserved[i] == 'changes' then
    changes = reserved[i + 1]
  elseif tonumber(reserved[i + 1]) <= tonumber(now) then
    redis.call('HDEL', KEYS[1], reserved[i]) -- whoever reserved it has died
  elseif not jobs[reserved[i]] then
    jobs[reserved[i]] = true
    count = count + 1
  end
end
if changes ~= ARGV[3] then return {'changed', 0} end
local is_new = not jobs[ARGV[1]]
if is_new and tonumber(ARGV[4]) >= 0 and count >= tonumber(ARGV[4]) then return {'jobs', count} end
if is_new and tonumber(ARGV[5]) >= 0 then
  local submissions = tonumber(redis.call('HGET', KEYS[2], ARGV[2]) or 0)
  if submissions >= tonumber(ARGV[5]) then return {'submissions', submissions} end
  redis.call('HINCRBY', KEYS[2], ARGV[2], 1)
  redis.call('EXPIRE', KEYS[2], ARGV[7])
end
redis.call('HSET', KEYS[1], ARGV[1], now + ARGV[6])
redis.call('EXPIRE', KEYS[1], ARGV[7])
return {'reserved', count}
