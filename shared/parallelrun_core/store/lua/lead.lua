-- Leadership of one job: at most one process holds it, and the term tells leaders apart.
--
-- KEYS  1 job  2 leader
-- ARGV  1 acquire | renew | resign  2 token  3 time to live, ms; of a resignation: how long nobody shall lead
--       4 acquire: highest term in the folder; else: own term
--       5 acquire: how long leadership can last, ms; if the clock was set back, it would last for as long as that jumped
-- Answer: acquire → the term, or 0 while another leads; renew, resign → 1, or 0 when it is lost.

local action, token = ARGV[1], ARGV[2]
local leader = redis.call('GET', KEYS[2])
local term = tonumber(redis.call('HGET', KEYS[1], 'term') or 0)
if action == 'acquire' then
  if leader and redis.call('PTTL', KEYS[2]) <= tonumber(ARGV[5]) then return 0 end
  term = math.max(term, tonumber(ARGV[4])) + 1
  redis.call('HSET', KEYS[1], 'term', term)
  redis.call('SET', KEYS[2], token, 'PX', ARGV[3])
  return term
end
-- A key that expired while its owner was slow may be taken back as long as no other term has begun.
if term ~= tonumber(ARGV[4]) or (leader and leader ~= token) then return 0 end
if action == 'renew' then
  redis.call('SET', KEYS[2], token, 'PX', ARGV[3])
elseif tonumber(ARGV[3]) > 0 then
  redis.call('SET', KEYS[2], '', 'PX', ARGV[3])
elseif leader then
  redis.call('DEL', KEYS[2])
end
return 1
