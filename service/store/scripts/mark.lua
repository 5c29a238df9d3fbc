-- A refresh mark into the log, once per power of two whoever is first.
--
-- KEYS  1 meta  2 rewards
-- ARGV  1 born  2 position  3 power  4 mark  5 last log id folded  6 how many entries to send back
-- Returns {status, appended, [log]}
-- Race met here: two workers find the same refresh due. The first mark stands, and both fold it.

if redis.call('HGET', KEYS[1], 'born') ~= ARGV[1] then
  return {'gone'}
end
local appended = tonumber(redis.call('HGET', KEYS[1], 'appended') or '0')
if appended < tonumber(ARGV[2]) then
  return {'behind'}
end
if tonumber(redis.call('HGET', KEYS[1], 'mark') or '0') < tonumber(ARGV[3]) then
  redis.call('HSET', KEYS[1], 'mark', ARGV[3])
  redis.call('XADD', KEYS[2], '*', 'm', ARGV[4])
  appended = redis.call('HINCRBY', KEYS[1], 'appended', 1)
end
return {'ok', appended, redis.call('XRANGE', KEYS[2], '(' .. ARGV[5], '+', 'COUNT', ARGV[6])}
