-- How far the learner is, once per interval: whoever comes first writes.
--
-- KEYS  1 meta  2 timeline
-- ARGV  1 born  2 interval, ms  3 how many to keep  4 the model's counters, packed
-- Returns 1 if written
-- Race met here: several workers that sample the same interval. Its first sample stands.

local born, rounds = unpack(redis.call('HMGET', KEYS[1], 'born', 'rounds'))
if born ~= ARGV[1] then
  return 0
end
local time = redis.call('TIME')
local now_ms = time[1] * 1000 + math.floor(time[2] / 1000)
local at_ms = now_ms - now_ms % tonumber(ARGV[2])
local last = redis.call('XREVRANGE', KEYS[2], '+', '-', 'COUNT', 1)
if last[1] and tonumber(string.match(last[1][1], '^%d+')) >= at_ms then
  return 0
end
redis.call('XADD', KEYS[2], 'MAXLEN', ARGV[3], string.format('%.0f-0', at_ms),
  'rounds', rounds or '0', 'model', ARGV[4])
return 1
