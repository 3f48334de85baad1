-- Leadership of one job: at most one process holds it, and the term tells leaders apart.
--
-- KEYS  1 job  2 leader
-- ARGV  1 acquire | renew | resign | wait  2 token  3 time to live, ms; of a resignation: how long nobody shall lead; of
--       a wait: how long nobody is asked to lead, unless the job is woken  4 acquire: highest term in the folder; else:
--       own term  5 acquire: how long leadership can last, ms; if the clock was set back, it would last for as long as
--       that jumped; wait: how many wakes the leader has seen
-- Answer: acquire → the term, or 0 while another leads; renew, resign → 1, or 0 when it is lost; wait → the same, or 2
--         when the job was woken meanwhile, so the process leads on.

local action, token = ARGV[1], ARGV[2]
local leader = redis.call('GET', KEYS[2])
local term = tonumber(redis.call('HGET', KEYS[1], 'term') or 0)
if action == 'acquire' then
  if leader and leader ~= 'waiting' and redis.call('PTTL', KEYS[2]) <= tonumber(ARGV[5]) then return 0 end
  term = math.max(term, tonumber(ARGV[4])) + 1
  redis.call('HSET', KEYS[1], 'term', term)
  redis.call('SET', KEYS[2], token, 'PX', ARGV[3])
  return term
end
-- A key that expired while its owner was slow may be taken back as long as no other term has begun.
if term ~= tonumber(ARGV[4]) or (leader and leader ~= token) then return 0 end
if action == 'renew' then
  redis.call('SET', KEYS[2], token, 'PX', ARGV[3])
elseif action == 'wait' then
  if (redis.call('HGET', KEYS[1], 'wakes') or '0') ~= ARGV[5] then return 2 end
  redis.call('SET', KEYS[2], 'waiting', 'PX', ARGV[3])
elseif tonumber(ARGV[3]) > 0 then
  redis.call('SET', KEYS[2], '', 'PX', ARGV[3])
elseif leader then
  redis.call('DEL', KEYS[2])
end
return 1
