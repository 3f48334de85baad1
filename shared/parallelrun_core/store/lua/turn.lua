-- One turn of an agent for one job: report what ended, renew the session, lease what comes next.
--
-- KEYS  1 job  2 ready  3 messages  4 leases  5 tries  6 lost  7 sessions  8 nodes  9 outcomes  10 twins
-- ARGV  1 session  2 node  3 generation  4 mode: join | stay | leave  5 how many to lease  6 nonce
--       7 lease, ms from now; 0: it was renewed a moment ago, and is not renewed (a join always does)
--       and if there is something to report, 8 number of decided  9 number of retries  10 number of returns, then
--         decided: id, token, record      the mini-batch is done or has failed for good
--         retries: id, token, record      the try failed, another shall follow: charged
--         returns: id, token              never started: goes back uncharged
-- Answer {state, ready left, refused reports, [id, token, tries, lost, message]...}, or {'lost', state} when the session
-- has been given up: its mini-batches belong to others now, and nothing of this turn was done. {'gone'} when there is no
-- such job, or the agent takes it for one of another generation: what it would commit could not be decided.

local session, node, mode = ARGV[1], ARGV[2], ARGV[4]
local job = redis.call('HMGET', KEYS[1], 'state', 'generation')
local state = job[1]
if not state or (job[2] and job[2] ~= ARGV[3]) then return {'gone'} end

if mode ~= 'join' and not redis.call('ZRANK', KEYS[7], session) then return {'lost', state} end
if ARGV[7] ~= '0' then
  local time = redis.call('TIME')
  redis.call('ZADD', KEYS[7], time[1] * 1000 + math.floor(time[2] / 1000) + ARGV[7], session)
end

local at = 11
local refused = 0

-- Most jobs have none of these. A mini-batch may have been given out a second time (speculate.lua): its first delivery is
-- then in `twins`. Or a try or a delivery before may have gone wrong. Or only some nodes may work for the job.
local unusual = redis.call('EXISTS', KEYS[10], KEYS[5], KEYS[6], KEYS[8]) > 0
local have_twins = unusual and redis.call('EXISTS', KEYS[10]) == 1
local function twin(id) return have_twins and redis.call('HGET', KEYS[10], id) end

-- Ends one delivery that decided nothing; true when the mini-batch is with nobody else and must be given out anew.
local function release(id, token)
  local first = twin(id)
  if first == token then
    redis.call('HDEL', KEYS[10], id)
    return false
  elseif first then
    redis.call('HSET', KEYS[4], id, first)
    redis.call('HDEL', KEYS[10], id)
    return false
  end
  redis.call('HDEL', KEYS[4], id)
  return true
end

-- Takes `count` reports of `width` arguments; answers those whose lease is still theirs, with their tokens. Both deliveries
-- of a mini-batch may be reported in one turn: one of them `decides`, but each has a lease to be released.
local function take(count, width, decides)
  local ids, reports = {}, {}
  if count == 0 then return ids, reports, {} end
  for i = 0, count - 1 do ids[#ids + 1] = ARGV[at + i * width] end
  local tokens = redis.call('HMGET', KEYS[4], unpack(ids))
  local mine, seen, held_by = {}, {}, {}
  for i, held in ipairs(tokens) do
    local base = at + (i - 1) * width
    local token = ARGV[base + 1]
    local counts_once = decides and ARGV[base] or token
    if state == 'processing' and (held == token or twin(ARGV[base]) == token) and not seen[counts_once] then
      seen[counts_once] = true
      mine[#mine + 1] = ARGV[base]
      held_by[#mine] = token
      reports[#reports + 1] = ARGV[base + 2]
    else
      refused = refused + 1
    end
  end
  at = at + count * width
  return mine, reports, held_by
end

local function report(records)
  if #records > 0 then
    redis.call('XADD', KEYS[9], '*', 'r', '[' .. table.concat(records, ',') .. ']')
  end
end

local decided, records = take(tonumber(ARGV[8] or 0), 3, true)
if #decided > 0 then
  redis.call('HDEL', KEYS[4], unpack(decided))
  redis.call('HDEL', KEYS[3], unpack(decided))
  if have_twins then redis.call('HDEL', KEYS[10], unpack(decided)) end
  if unusual then
    redis.call('HDEL', KEYS[5], unpack(decided))
    redis.call('HDEL', KEYS[6], unpack(decided))
  end
  report(records)
end

local retries, tokens
retries, records, tokens = take(tonumber(ARGV[9] or 0), 3)
for i, id in ipairs(retries) do
  redis.call('HINCRBY', KEYS[5], id, 1)
  if release(id, tokens[i]) then redis.call('LPUSH', KEYS[2], id) end
end
report(records)

local returns
returns, records, tokens = take(tonumber(ARGV[10] or 0), 2)
for i = #returns, 1, -1 do
  if release(returns[i], tokens[i]) then redis.call('LPUSH', KEYS[2], returns[i]) end
end

local answer = {state, 0, refused}
if mode == 'leave' then
  local prefix = session .. '/'
  local twins = have_twins and redis.call('HGETALL', KEYS[10]) or {}
  for i = 1, #twins, 2 do -- what it still held and didn't report: first deliveries, whose second one goes on alone
    if twins[i + 1]:sub(1, #prefix) == prefix then redis.call('HDEL', KEYS[10], twins[i]) end
  end
  local leases = redis.call('HGETALL', KEYS[4])
  for i = 1, #leases, 2 do
    if leases[i + 1]:sub(1, #prefix) == prefix and release(leases[i], leases[i + 1]) then
      redis.call('LPUSH', KEYS[2], leases[i])
    end
  end
  redis.call('ZREM', KEYS[7], session)
  if state == 'finalizing' then redis.call('XADD', KEYS[9], '*', 'left', session) end -- the leader waits for it
  return answer
end

local assigned = unusual and redis.call('EXISTS', KEYS[8]) == 1
local welcome = not assigned or redis.call('SISMEMBER', KEYS[8], node) == 1
if state == 'processing' and welcome then
  local ids = ARGV[5] ~= '0' and redis.call('LPOP', KEYS[2], ARGV[5]) or nil
  if ids then
    local messages = redis.call('HMGET', KEYS[3], unpack(ids))
    local charged = unusual or #retries > 0
    local leases = {}
    for i, id in ipairs(ids) do
      if messages[i] then
        local token = session .. '/' .. ARGV[6] .. '.' .. id
        leases[#leases + 1] = id
        leases[#leases + 1] = token
        answer[#answer + 1] = tonumber(id)
        answer[#answer + 1] = token
        answer[#answer + 1] = charged and tonumber(redis.call('HGET', KEYS[5], id) or 0) or 0
        answer[#answer + 1] = charged and tonumber(redis.call('HGET', KEYS[6], id) or 0) or 0
        answer[#answer + 1] = messages[i]
      end
    end
    if #leases > 0 then redis.call('HSET', KEYS[4], unpack(leases)) end
  end
  answer[2] = redis.call('LLEN', KEYS[2])
end
return answer
