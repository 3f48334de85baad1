-- One turn of an agent for one job: report what ended, renew the session, lease what is next.
--
-- KEYS  1 job  2 ready  3 messages  4 leases  5 tries  6 lost  7 sessions  8 nodes  9 outcomes  10 twins  11 delayed
-- ARGV  1 session  2 node  3 generation  4 lease, ms
--       5 mode: join | stay | renew | leave; stay is for a session whose lease was renewed a moment ago
--       6 how many to lease  7 stem of their tokens: session, '/', what no other call has, '.'
--       and if there is something to report, 8 a MessagePack map that has, where there are any, [ids, stems] of the
--         decided     done, or failed for good
--         retries     the try failed, another shall follow; a third list has what each is charged, in tries, a fourth
--                     one how long it pauses before the next try, ms (core/spec/retry_policy.py), a fifth one whether it
--                     is suspect: its worker has died. It has an entry in `lost` from now on, of 0 if it was never lost
--         returns     never started: they go back uncharged
--       9 records of the decided, a JSON list in the same order  10 their seal  11 records of the retries  12 their seal
-- Answer {state, ready left, refused reports}, and if something was leased, then also ids, messages, and when some may
-- have failed or been lost before, tries and lost: each a list in the same order; what has no message is not leased.
-- Ready left is -1 when the job's budget is used up: nothing more of it is handed out.
-- {'lost', state} when the session has been given up: its mini-batches belong to others now, and the turn had no effect.
-- {'gone'} when there is no such job, or the agent believes it to be of another generation: what it would commit could not
-- be decided.
--
-- The token of a delivery is its stem and its id. A lease is kept as the stem alone: it is the same string for all that
-- one call leases, which no other call shares.

local session, node, mode = ARGV[1], ARGV[2], ARGV[5]
local job = redis.call('HMGET', KEYS[1], 'state', 'generation', 'paused', 'used_up')
local state = job[1]
if not state or (job[2] and job[2] ~= ARGV[3]) then return {'gone'} end

if mode ~= 'join' and not redis.call('ZRANK', KEYS[7], session) then return {'lost', state} end
if mode == 'join' or mode == 'renew' then
  local time = redis.call('TIME')
  redis.call('ZADD', KEYS[7], time[1] * 1000 + math.floor(time[2] / 1000) + ARGV[4], session)
end

-- Most jobs have none of these: mini-batches that were delivered a second time (speculate.lua), whose first delivery is
-- then in `twins`; tries that failed and deliveries that were lost; a list of the nodes that may work for the job.
local unusual = redis.call('EXISTS', KEYS[10], KEYS[5], KEYS[6], KEYS[8]) > 0
local charged = unusual
local refused = 0

-- Most turns only lease, and creating these functions would take as long as that.
if ARGV[8] or mode == 'leave' then
  local have_twins = unusual and redis.call('EXISTS', KEYS[10]) == 1
  local function twin(id) return have_twins and redis.call('HGET', KEYS[10], id) end

  -- Ends a delivery that decided nothing; unless the mini-batch is also with another session, it is delivered again: at
  -- once, or after a pause.
  local function release(id, stem, pause_ms)
    local first = twin(id)
    if first then
      if first ~= stem then redis.call('HSET', KEYS[4], id, first) end
      redis.call('HDEL', KEYS[10], id)
    else
      redis.call('HDEL', KEYS[4], id)
      if pause_ms and pause_ms > 0 then
        local time = redis.call('TIME')
        redis.call('ZADD', KEYS[11], time[1] * 1000 + math.floor(time[2] / 1000) + pause_ms, id)
      else
        redis.call('LPUSH', KEYS[2], id)
      end
    end
  end

  local function are_same(some, others)
    for i = 1, #others do
      if some[i] ~= others[i] then return false end
    end
    return true
  end

  -- Takes reports; returns ids and stems of those that still hold their lease, and passes their records to the leader:
  -- always the whole list, because its seal is of the whole, and which of them were taken if not all were.
  -- Those that decide end it.
  -- Both deliveries of a mini-batch may be reported in one turn: one of them decides, but each has a lease to release.
  local function take(reports, records, seal, decides)
    if not reports or state ~= 'processing' then
      refused = refused + (reports and #reports[1] or 0)
      return {}, {}
    end
    local all, all_stems = reports[1], reports[2]
    local held = redis.call('HMGET', KEYS[4], unpack(all))
    -- Nearly always, all are held and none comes twice: then as many leases end as there are reports.
    if decides and are_same(held, all_stems) and redis.call('HDEL', KEYS[4], unpack(all)) == #all then
      redis.call('XADD', KEYS[9], '*', 'r', records, 't', seal)
      return all, all_stems
    end
    local ids, stems, taken, seen = {}, {}, {}, {}
    for i, id in ipairs(all) do
      local stem = all_stems[i]
      local counts_once = decides and id or stem .. id
      if (held[i] == stem or twin(id) == stem) and not seen[counts_once] then
        seen[counts_once] = true
        ids[#ids + 1] = id
        stems[#ids] = stem
        taken[#ids] = i - 1
      end
    end
    refused = refused + #all - #ids
    if decides and #ids > 0 then redis.call('HDEL', KEYS[4], unpack(ids)) end
    if records and #ids > 0 then
      local which = #ids < #all and table.concat(taken, ',') or ''
      redis.call('XADD', KEYS[9], '*', 'r', records, 't', seal, unpack(which ~= '' and {'i', which} or {}))
    end
    return ids, stems
  end

  local said = ARGV[8] and cmsgpack.unpack(ARGV[8]) or {}

  local decided = take(said.decided, ARGV[9], ARGV[10], true)
  if #decided > 0 then
    redis.call('HDEL', KEYS[3], unpack(decided))
    if have_twins then redis.call('HDEL', KEYS[10], unpack(decided)) end
    if unusual then
      redis.call('HDEL', KEYS[5], unpack(decided))
      redis.call('HDEL', KEYS[6], unpack(decided))
    end
  end

  local retries, stems = take(said.retries, ARGV[11], ARGV[12])
  local places = {}
  for i, id in ipairs(#retries > 0 and said.retries[1] or {}) do places[said.retries[2][i] .. id] = i end
  for i, id in ipairs(retries) do
    local place = places[stems[i] .. id]
    redis.call('HINCRBY', KEYS[5], id, said.retries[3][place])
    if said.retries[5][place] then redis.call('HINCRBY', KEYS[6], id, 0) end
    release(id, stems[i], said.retries[4][place])
    charged = true
  end

  local returns
  returns, stems = take(said.returns)
  for i = #returns, 1, -1 do release(returns[i], stems[i]) end

  if mode == 'leave' then
    local prefix = session .. '/'
    local twins = have_twins and redis.call('HGETALL', KEYS[10]) or {}
    for i = 1, #twins, 2 do -- what it still held and didn't report: first deliveries, whose second one goes on alone
      if twins[i + 1]:sub(1, #prefix) == prefix then redis.call('HDEL', KEYS[10], twins[i]) end
    end
    local leases = redis.call('HGETALL', KEYS[4])
    for i = 1, #leases, 2 do
      if leases[i + 1]:sub(1, #prefix) == prefix then release(leases[i], leases[i + 1]) end
    end
    redis.call('ZREM', KEYS[7], session)
    if redis.call('EXISTS', KEYS[7]) == 0 then redis.call('HDEL', KEYS[1], 'joining') end -- the next node joins at once
    if state == 'finalizing' then redis.call('XADD', KEYS[9], '*', 'left', session) end -- the leader waits for it
    return {state, 0, refused}
  end
end

local answer = {state, 0, refused}
local welcome = not unusual or redis.call('EXISTS', KEYS[8]) == 0 or redis.call('SISMEMBER', KEYS[8], node) == 1
if state == 'processing' and job[4] then
  answer[2] = -1
elseif state == 'processing' and welcome and not job[3] then
  local ids = ARGV[6] ~= '0' and redis.call('LPOP', KEYS[2], ARGV[6])
  if ids then
    local messages = redis.call('HMGET', KEYS[3], unpack(ids))
    local leases = {}
    for i = 1, #ids do
      if messages[i] then
        leases[#leases + 1] = ids[i]
        leases[#leases + 1] = ARGV[7]
      end
    end
    if #leases > 0 then redis.call('HSET', KEYS[4], unpack(leases)) end
    answer[4], answer[5] = ids, messages
    if charged then
      answer[6], answer[7] = redis.call('HMGET', KEYS[5], unpack(ids)), redis.call('HMGET', KEYS[6], unpack(ids))
    end
  end
  answer[2] = redis.call('LLEN', KEYS[2])
end
return answer
