-- The leader ends the sessions whose lease has expired: what they held goes back, counted as lost and not as a failed try.
-- What was lost too often is given up: the leader is told until it says that it has recorded that (drop.lua). What has
-- paused for long enough after a failed try is made ready.
--
-- KEYS  1 job  2 ready  3 messages  4 leases  5 tries  6 lost  7 sessions  8 twins  9 given_up  10 delayed
-- ARGV  1 term  2 lost deliveries that a mini-batch may have  3 longest lease, ms  4 longest pause, ms
-- Answer {lost sessions, mini-batches that went back, {id, message, tries} of each that is given up…}, or {'fenced'}.

if redis.call('HGET', KEYS[1], 'term') ~= ARGV[1] then return {'fenced'} end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

-- If the clock was set back, sessions would stay alive for as long as it jumped.
for _, session in ipairs(redis.call('ZRANGEBYSCORE', KEYS[7], '(' .. (now + 2 * ARGV[3]), '+inf')) do
  redis.call('ZADD', KEYS[7], now + ARGV[3], session)
end

local due = redis.call('ZRANGEBYSCORE', KEYS[10], '-inf', now)
for _, id in ipairs(redis.call('ZRANGEBYSCORE', KEYS[10], '(' .. (now + ARGV[4]), '+inf')) do
  due[#due + 1] = id -- if the clock was set back, it would pause for as long as that jumped
end
for i = #due, 1, -1 do -- the one that is due first comes to the front
  redis.call('ZREM', KEYS[10], due[i])
  redis.call('LPUSH', KEYS[2], due[i])
end

local expired = redis.call('ZRANGEBYSCORE', KEYS[7], '-inf', now)
if #expired == 0 and redis.call('EXISTS', KEYS[9]) == 0 then return {0, 0} end
local gone = {}
for _, session in ipairs(expired) do
  gone[session] = true
  redis.call('ZREM', KEYS[7], session)
end
if redis.call('EXISTS', KEYS[7]) == 0 then redis.call('HDEL', KEYS[1], 'joining') end -- the next node joins at once

local twins = redis.call('HGETALL', KEYS[8])
for i = 1, #twins, 2 do -- lost first deliveries: a second one is on its way
  if gone[twins[i + 1]:match('^[^/]*')] then redis.call('HDEL', KEYS[8], twins[i]) end
end

local back = 0
local leases = redis.call('HGETALL', KEYS[4])
for i = 1, #leases, 2 do
  local id = leases[i]
  local first = gone[leases[i + 1]:match('^[^/]*')] and redis.call('HGET', KEYS[8], id)
  if first then -- the first delivery of it goes on alone
    redis.call('HSET', KEYS[4], id, first)
    redis.call('HDEL', KEYS[8], id)
  elseif gone[leases[i + 1]:match('^[^/]*')] then
    redis.call('HDEL', KEYS[4], id)
    if redis.call('HINCRBY', KEYS[6], id, 1) > tonumber(ARGV[2]) then
      redis.call('HSET', KEYS[9], id, redis.call('HGET', KEYS[5], id) or 0)
      redis.call('HDEL', KEYS[5], id)
      redis.call('HDEL', KEYS[6], id)
    else
      redis.call('LPUSH', KEYS[2], id)
      back = back + 1
    end
  end
end

local answer = {#expired, back}
local given_up = redis.call('HGETALL', KEYS[9])
for i = 1, #given_up, 2 do
  answer[#answer + 1] = {given_up[i], redis.call('HGET', KEYS[3], given_up[i]) or '', given_up[i + 1]}
end
return answer
