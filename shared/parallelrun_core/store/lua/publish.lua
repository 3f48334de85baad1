-- The leader puts the next mini-batches up for leasing. The checkpoint moves in the same step, so a leader that
-- dies between two calls leaves nothing published twice and nothing skipped.
--
-- KEYS  1 job  2 ready  3 messages
-- ARGV  1 term  2 generation  3 id of the first message  4… messages, of consecutive ids; an empty one is decided already, and skipped
-- Answer {1, messages outstanding}, {0, 'fenced'}, {0, 'ended'} when the job isn't processing any more, or
-- {0, checkpoint} when the checkpoint isn't at that id.

local job = redis.call('HMGET', KEYS[1], 'term', 'published', 'state')
if job[1] ~= ARGV[1] then return {0, 'fenced'} end
if job[3] ~= 'processing' then return {0, 'ended'} end
local first = tonumber(ARGV[3])
if tonumber(job[2] or 0) ~= first then return {0, tonumber(job[2] or 0)} end

local ids, fields = {}, {}
for i = 4, #ARGV do
  if ARGV[i] ~= '' then
    local id = string.format('%d', first + i - 4)
    ids[#ids + 1] = id
    fields[#fields + 1] = id
    fields[#fields + 1] = ARGV[i]
  end
end
if #ids > 0 then
  redis.call('HSET', KEYS[3], unpack(fields))
  redis.call('RPUSH', KEYS[2], unpack(ids))
end
if #ARGV > 3 then redis.call('HSET', KEYS[1], 'published', first + #ARGV - 3, 'generation', ARGV[2]) end
return {1, redis.call('HLEN', KEYS[3])}
