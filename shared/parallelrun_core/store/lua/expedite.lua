-- The leader lets mini-batches be run next, out of order: those that wait move to the front, a pause after a failed try
-- ends, and those that are not published yet are, before the checkpoint gets there.
--
-- KEYS  1 job  2 ready  3 messages  4 delayed
-- ARGV  1 term  2 generation  3… id and message of each
-- Answer: how many were moved or published, or -1 when another term has begun.

local job = redis.call('HMGET', KEYS[1], 'term', 'state', 'published', 'expedited')
if job[1] ~= ARGV[1] then return -1 end
if job[2] ~= 'processing' then return 0 end
local expedited = (job[4] or ''):match('^' .. ARGV[2] .. ':(.*)') or ''

local moved = 0
for i = 3, #ARGV, 2 do
  local id, message = ARGV[i], ARGV[i + 1]
  if redis.call('HEXISTS', KEYS[3], id) == 1 then
    if redis.call('LREM', KEYS[2], 1, id) + redis.call('ZREM', KEYS[4], id) > 0 then -- else, somebody has it
      redis.call('LPUSH', KEYS[2], id)
      moved = moved + 1
    end
  elseif tonumber(id) >= tonumber(job[3] or 0) and not (',' .. expedited .. ','):find(',' .. id .. ',', 1, true) then
    redis.call('HSET', KEYS[3], id, message)
    redis.call('LPUSH', KEYS[2], id)
    expedited = expedited == '' and id or expedited .. ',' .. id
    moved = moved + 1
  end
end
redis.call('HSET', KEYS[1], 'expedited', ARGV[2] .. ':' .. expedited)
return moved
