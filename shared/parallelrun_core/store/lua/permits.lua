-- Permits for calls of a service that somebody else runs, spread evenly over time for all nodes of the cluster.
--
-- KEYS: the limit's state (hash), the permits that are held (zset: holder -> when it is lost, ms)
-- ARGV: operation, then
--   take: requests a minute, tokens a minute, most in flight (0: no such limit), life of a permit in ms, horizon in ms,
--         then holder and tokens of each call
--         Returns how many ms to wait before asking again (0: all were given), then for each permit in how many ms the
--         call may begin.
--   back: holders that have ended
--   keep: life of a permit in ms, then holders that go on
--   slow: ms in which the service wants no calls
--
-- The state: `requests` and `tokens`, the time at which the next call may begin (ms); `share`, the part of the rates
-- that the service bears (after answers that it was too much), and when that was known.
local clock = redis.call('TIME')
local now = clock[1] * 1000 + clock[2] / 1000
local BURST_MS, RECOVERS_MS, SLOWED, LEAST = 250, 200000, 0.75, 0.05

if ARGV[1] == 'back' then
    for i = 2, #ARGV do redis.call('ZREM', KEYS[2], ARGV[i]) end
    return {}
end
if ARGV[1] == 'keep' then
    for i = 3, #ARGV do redis.call('ZADD', KEYS[2], 'XX', string.format('%.0f', now + ARGV[2]), ARGV[i]) end
    return {}
end

local state = redis.call('HMGET', KEYS[1], 'requests', 'tokens', 'share', 'share_at')
local requests, tokens = tonumber(state[1] or 0), tonumber(state[2] or 0)
local share, share_at = tonumber(state[3] or 1), tonumber(state[4] or now)
share = math.min(1, share + (now - share_at) / RECOVERS_MS)

if ARGV[1] == 'slow' then
    if now - share_at > 1000 or not state[4] then  -- many calls that were under way are answered so at once
        share = math.max(LEAST, share * SLOWED)
    end
    requests = math.max(requests, now + ARGV[2])
    redis.call('HSET', KEYS[1], 'requests', string.format('%.3f', requests), 'share', share, 'share_at',
        string.format('%.3f', now))
    return {}
end

local per_request = ARGV[2] + 0 > 0 and 60000 / ARGV[2] / share or 0
local per_token = ARGV[3] + 0 > 0 and 60000 / ARGV[3] / share or 0
local most, life, horizon = ARGV[4] + 0, ARGV[5] + 0, ARGV[6] + 0
local held = 0
if most > 0 then
    redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', string.format('%.0f', now))
    held = redis.call('ZCARD', KEYS[2])
end
local answer = {0}
for i = 7, #ARGV, 2 do
    if most > 0 and held >= most then
        answer[1] = 50
        break
    end
    local start = math.max(now, requests, tokens)
    if start > now + horizon then
        answer[1] = math.ceil(start - now - horizon)
        break
    end
    -- What was not asked for in time is lost, but for a moment's.
    if per_request > 0 then requests = math.max(requests, now - BURST_MS) + per_request end
    if per_token > 0 then tokens = math.max(tokens, now - BURST_MS) + per_token * ARGV[i + 1] end
    if most > 0 then
        redis.call('ZADD', KEYS[2], string.format('%.0f', start + life), ARGV[i])
        held = held + 1
    end
    answer[#answer + 1] = math.floor(start - now)
end
redis.call('HSET', KEYS[1], 'requests', string.format('%.3f', requests), 'tokens', string.format('%.3f', tokens))
return answer
