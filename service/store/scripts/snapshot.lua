-- A model snapshot, only forward; the log is cut where no refresh can need it any more.
--
-- KEYS  1 meta  2 model  3 rewards
-- ARGV  1 born  2 position  3 upto (log id)  4 snapshot  5 log entries before it to keep
-- Race met here: a slower worker with an older snapshot. It is not written.

if redis.call('HGET', KEYS[1], 'born') ~= ARGV[1] then
  return 0
end
if tonumber(redis.call('HGET', KEYS[2], 'position') or '-1') >= tonumber(ARGV[2]) then
  return 0
end
redis.call('HSET', KEYS[2], 'position', ARGV[2], 'upto', ARGV[3], 'snapshot', ARGV[4])
local after = tonumber(redis.call('HGET', KEYS[1], 'appended') or '0') - tonumber(ARGV[2])
redis.call('XTRIM', KEYS[3], 'MAXLEN', '~', tonumber(ARGV[5]) + after)
return 1
