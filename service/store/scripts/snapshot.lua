-- A model snapshot, only forward; the log is cut where no refresh can need it any more.
--
-- KEYS  1 meta  2 model  3 rewards
-- ARGV  1 born  2 configured  3 position  4 upto (log id)  5 snapshot
--       6 rows before it that a refresh still completes  7 log entries before it to keep
-- Races met here: a slower worker with an older snapshot; one that has not seen yet that the
-- learner was reconfigured, and folds by other rules; one that has not seen yet that the server
-- came back older, and has folded another log. Theirs are not written.

local born, configured, appended =
  unpack(redis.call('HMGET', KEYS[1], 'born', 'configured', 'appended'))
local after = tonumber(appended or '0') - tonumber(ARGV[3])
if born ~= ARGV[1] or (configured or '0') ~= ARGV[2] or after < 0 then
  return 0
end
local last = redis.call('XREVRANGE', KEYS[3], ARGV[4], '-', 'COUNT', 1)
if last[1] and last[1][1] ~= ARGV[4] then
  return 0
end
if tonumber(redis.call('HGET', KEYS[2], 'position') or '-1') >= tonumber(ARGV[3]) then
  return 0
end
redis.call('HSET', KEYS[2], 'position', ARGV[3], 'upto', ARGV[4], 'snapshot', ARGV[5],
  'kept', ARGV[6])
redis.call('XTRIM', KEYS[3], 'MAXLEN', '~', tonumber(ARGV[7]) + after)
return 1
