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
-- that the service bears (after answers that it was too much), and when that was known; `at`, the time of the last call.
-- If the clock was set back since then, all of these are, too: nobody waits for as long as it jumped.
--
-- Who asks is a job on a node, a party, which has in its field `had until asked given held`: what it had of the rate (ms,
-- times the parties of its job that wait, so that jobs get equal parts and their nodes equal parts of those), until when
-- it counts as waiting, when it asked last and got a permit last, and how many it holds. Of two that wait, none gets
-- SLACK_MS of the rate more than the other one, unless the rate would be lost; of permits in flight that all are held,
-- those with more leave what comes back to those with fewer, and those with as many take turns.
local clock = redis.call('TIME')
local now = clock[1] * 1000 + clock[2] / 1000
local BURST_MS, RECOVERS_MS, SLOWED, LEAST = 250, 200000, 0.75, 0.05
local SLACK_MS, TURN_MS, PAUSE_MS, ALIVE_MS, FORGET_MS, JUMP_MS = 100, 250, 50, 1000, 60000, 1000

if ARGV[1] == 'back' then
    for i = 2, #ARGV do redis.call('ZREM', KEYS[2], ARGV[i]) end
    return {}
end
if ARGV[1] == 'keep' then
    for i = 3, #ARGV do redis.call('ZADD', KEYS[2], 'XX', string.format('%.0f', now + ARGV[2]), ARGV[i]) end
    return {}
end

local state = redis.call('HMGET', KEYS[1], 'requests', 'tokens', 'share', 'share_at', 'at')
local set_back = math.max(0, tonumber(state[5] or 0) - now)
local requests, tokens = tonumber(state[1] or 0) - set_back, tonumber(state[2] or 0) - set_back
local share, share_at = tonumber(state[3] or 1), tonumber(state[4] or now + set_back) - set_back
share = math.min(1, share + (now - share_at) / RECOVERS_MS)

if ARGV[1] == 'slow' then
    if now - share_at > 1000 or not state[4] then  -- many calls that were under way are answered so at once
        share = math.max(LEAST, share * SLOWED)
    end
    requests = math.max(requests, now + ARGV[2])
    redis.call('HSET', KEYS[1], 'requests', string.format('%.3f', requests), 'share', share, 'share_at',
        string.format('%.3f', now), 'at', string.format('%.3f', now))
    return {}
end

local per_request = ARGV[2] + 0 > 0 and 60000 / ARGV[2] / share or 0
local per_token = ARGV[3] + 0 > 0 and 60000 / ARGV[3] / share or 0
local most, life, horizon = ARGV[4] + 0, ARGV[5] + 0, ARGV[6] + 0
local job, waiting, mine = ARGV[7], ARGV[9] + 0, ARGV[10] + 0
local party = job .. ' ' .. ARGV[8]
local held = 0
if most > 0 then
    redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', string.format('%.0f', now))
    local latest = string.format('%.0f', now + horizon + life)
    for _, holder in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], '(' .. latest, '+inf')) do
        redis.call('ZADD', KEYS[2], latest, holder)  -- by a clock that was set back since
    end
    held = redis.call('ZCARD', KEYS[2])
end

local others, of_job, had, given, was_waiting = {}, {[job] = 1}, 0, 0, false
local entries = redis.call('HGETALL', KEYS[3])
local least = math.huge
for i = 1, #entries, 2 do
    local its_had, its_end, asked, its_given, its_held = string.match(entries[i + 1], '(%S+) (%S+) (%S+) (%S+) (%S+)')
    if asked - now > JUMP_MS then  -- by a clock that was set back since
        redis.call('HDEL', KEYS[3], entries[i])
    elseif entries[i] == party then
        had, given, was_waiting = its_had + 0, its_given + 0, its_end + 0 > now
    elseif its_end + 0 > now then
        local its_job = string.match(entries[i], '^%S+')
        of_job[its_job] = (of_job[its_job] or 0) + 1
        others[#others + 1] = {job = its_job, had = its_had + 0, asked = asked + 0, given = its_given + 0,
            held = its_held + 0}
        least = math.min(least, its_had)
    elseif asked + FORGET_MS < now then
        redis.call('HDEL', KEYS[3], entries[i])
    end
end
if least < math.huge and not was_waiting then had = math.max(had, least - SLACK_MS) end  -- it wanted nothing
local weight, pause = of_job[job], math.max(PAUSE_MS, 2 * #others)

local function is_turn_of_others(start)
    local is_scarce = most > 0 and held + #others >= most
    for _, other in ipairs(others) do
        if start > now and had > other.had + SLACK_MS then return true end
        if is_scarce and now - other.asked < ALIVE_MS + pause then
            local its_weight = of_job[other.job]
            local its_share, share_here = other.held * its_weight, mine * weight
            if its_share + its_weight <= share_here then return true end
            if its_share < share_here + weight and other.given < given and now - other.given > TURN_MS then
                return true
            end
        end
    end
    return false
end

local answer = {0}
for i = 11, #ARGV, 2 do
    if most > 0 and held >= most then
        answer[1] = pause
        break
    end
    local start = math.max(now, requests, tokens)
    if start > now + horizon then
        answer[1] = math.max(2 * pause, math.ceil(start - now - horizon))
        break
    end
    if is_turn_of_others(start) then
        answer[1] = pause
        break
    end
    -- What was not asked for in time is lost, but for a moment's.
    if per_request > 0 then requests = math.max(requests, now - BURST_MS) + per_request end
    if per_token > 0 then tokens = math.max(tokens, now - BURST_MS) + per_token * ARGV[i + 1] end
    if most > 0 then
        redis.call('ZADD', KEYS[2], string.format('%.0f', start + life), ARGV[i])
        held = held + 1
    end
    had, given = had + weight * math.max(per_request, per_token * ARGV[i + 1]), now
    waiting, mine = waiting - 1, mine + 1
    answer[#answer + 1] = math.floor(start - now)
end
redis.call('HSET', KEYS[1], 'requests', string.format('%.3f', requests), 'tokens', string.format('%.3f', tokens), 'at',
    string.format('%.3f', now))
local counts_until = waiting > 0 and now + answer[1] + ALIVE_MS or 0
redis.call('HSET', KEYS[3], party, string.format('%.3f %.0f %.0f %.3f %d', had, counts_until, now, given, mine))
return answer
