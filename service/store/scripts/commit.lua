-- One group commit: everything that waits in a worker, in one step.
--
-- KEYS  1 meta  2 moments  3 workers  4 due  5 rewards  6 recent  7 model  8 merged
--       then one key per decision, then one key per reward
-- ARGV  1 born  2 position (log entries this worker has folded)
--       3 worker  4 1 if this worker has a field already  5 its moments, or ""
--       6 last log id folded  7 how many log entries to send back  8 how many recent ids to keep
--       9 decision time to live, ms  10 wait for the reward, ms, or 0  11 estimate, or ""
--       12 number of decisions  13 number of rewards
--       then event id, record per decision; then event id, reward, R or D per reward
-- Returns {status, rounds, appended, configured, 1 if the moments were written,
--          1 if the field is gone, SHA-1 of what was merged of it or "", ms until something falls
--          due or false, [existing record or round per decision], [status, reward per reward],
--          [log]}
--
-- Races met here: a learner deleted or reset meanwhile (born differs: nothing is done), a server
-- that came back with older data (fewer entries than this worker has folded, or others in their
-- place: nothing is done), a worker taken for dead and merged away (its field is gone: nothing of
-- its sums is written, it must start a new field), two selects with one event id (the first
-- stands), two rewards, or a reward and its default, for one event (the first stands).

local meta, moments, workers, due, rewards, recent = unpack(KEYS, 1, 6)

local born, appended, rounds, configured =
  unpack(redis.call('HMGET', meta, 'born', 'appended', 'rounds', 'configured'))
if born ~= ARGV[1] then
  return {'gone'}
end
appended, rounds, configured =
  tonumber(appended or '0'), tonumber(rounds or '0'), tonumber(configured or '0')
if appended < tonumber(ARGV[2]) then
  return {'behind'}
end
local before = redis.call('XREVRANGE', rewards, ARGV[6], '-', 'COUNT', 1)
if before[1] and before[1][1] ~= ARGV[6] then
  return {'behind'}
end

local time = redis.call('TIME')
local now_ms = time[1] * 1000 + math.floor(time[2] / 1000)
local worker = ARGV[3]
local ttl_ms, wait_ms = tonumber(ARGV[9]), tonumber(ARGV[10])
local decisions, claims = tonumber(ARGV[12]), tonumber(ARGV[13])
local arg, key = 14, 9

-- decisions
local stored, repeated, falls_due, latest = {}, false, {}, {}
local due_ms = now_ms + (wait_ms > 0 and wait_ms or ttl_ms)
for i = 1, decisions do
  local event_id, record = ARGV[arg], ARGV[arg + 1]
  local numbered = string.sub(record, 1, 5) .. string.format('%020.0f', rounds + 1)
    .. string.sub(record, 26)
  local existing = redis.call('SET', KEYS[key], numbered, 'NX', 'GET', 'PX', ttl_ms)
  if existing then
    stored[i] = existing
    -- bytes 26 to 33 are the nonce: a worker's own decision sent again is no repetition
    if string.sub(existing, 26, 33) ~= string.sub(record, 26, 33) then
      repeated = true
    end
  else
    rounds = rounds + 1
    stored[i] = rounds
    latest[#latest + 1] = event_id
    falls_due[#falls_due + 1] = due_ms
    falls_due[#falls_due + 1] = event_id
  end
  arg, key = arg + 2, key + 1
end
if #latest > 0 then
  redis.call('HSET', meta, 'rounds', string.format('%.0f', rounds))
  redis.call('ZADD', due, unpack(falls_due))
  redis.call('LPUSH', recent, unpack(latest))
  redis.call('LTRIM', recent, 0, tonumber(ARGV[8]) - 1)
end

-- this worker's own sums: cumulative, so that writing them twice is harmless. Not written while
-- they hold the arms of a repeated select: the worker takes those out and comes again.
local merged = ''
local lost = ARGV[4] == '1' and redis.call('HEXISTS', moments, worker) == 0
if lost or (ARGV[4] == '0' and ARGV[5] ~= '') then
  -- without a field as far as it knows: its first write may have come without the answer
  merged = redis.call('GET', KEYS[8]) or ''
  lost = lost or merged ~= ''
end
local written = false
if ARGV[5] ~= '' and not repeated and not lost then
  redis.call('HSET', moments, worker, ARGV[5])
  redis.call('ZADD', workers, now_ms, worker)
  written = true
elseif ARGV[4] == '1' and not lost then
  redis.call('ZADD', workers, now_ms, worker)
end
if ARGV[11] ~= '' then
  redis.call('HSET', KEYS[7], 'estimate', ARGV[11])
end

-- rewards and defaults
local results, settled, counted, new_entries = {}, {}, {}, 0
for i = 1, claims do
  local event_id, reward, kind = ARGV[arg], ARGV[arg + 1], ARGV[arg + 2]
  local record = redis.call('GET', KEYS[key])
  local counter
  if not record then
    results[i] = {'unknown', ''}
    settled[#settled + 1] = event_id
  else
    local state = string.sub(record, 2, 2)
    local tail = 26 + string.byte(record, 4) + 256 * string.byte(record, 5)
    if state == 'P' then
      if string.byte(record, 3) == 1 then
        redis.call('XADD', rewards, '*', 'r', string.char(1) .. string.sub(record, tail) .. reward)
        new_entries = new_entries + 1
      end
      local kept = string.sub(record, 1, 1) .. kind .. string.sub(record, 3, tail - 1) .. reward
      redis.call('SET', KEYS[key], kept, 'KEEPTTL')
      settled[#settled + 1] = event_id
      counter = kind == 'R' and 'recorded' or 'defaults'
      results[i] = {'recorded', reward}
    else
      local status = state == 'R' and 'duplicate' or 'late'
      if kind == 'R' then
        counter = status == 'late' and 'late' or 'duplicates'
      end
      results[i] = {status, string.sub(record, tail, tail + 7)}
    end
  end
  if counter then
    counted[counter] = (counted[counter] or 0) + 1
  end
  arg, key = arg + 3, key + 1
end
if new_entries > 0 then
  appended = redis.call('HINCRBY', meta, 'appended', new_entries)
end
for counter, count in pairs(counted) do
  redis.call('HINCRBY', meta, counter, count)
end
if #settled > 0 then
  redis.call('ZREM', due, unpack(settled))
end

local log = redis.call('XRANGE', rewards, '(' .. ARGV[6], '+', 'COUNT', ARGV[7])
local first = redis.call('ZRANGE', due, 0, 0, 'WITHSCORES')
local due_in_ms = first[2] and math.max(0, tonumber(first[2]) - now_ms) or false
return {'ok', rounds, appended, configured, written and 1 or 0, lost and 1 or 0, merged, due_in_ms,
  stored, results, log}
