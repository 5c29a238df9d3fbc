-- A worker's moments into `base`, and its field away.
--
-- KEYS  1 moments  2 workers
-- ARGV  1 worker  2 SHA-1 of its field  3 SHA-1 of base, or ""  4 the new base
-- Races met here: the worker lives and has written since, or somebody else has merged. The sums
-- were made outside, of values that no longer stand: nothing is done.

local field = redis.call('HGET', KEYS[1], ARGV[1])
if not field or redis.sha1hex(field) ~= ARGV[2] then
  return 0
end
local base = redis.call('HGET', KEYS[1], 'base')
if (base and redis.sha1hex(base) or '') ~= ARGV[3] then
  return 0
end
redis.call('HSET', KEYS[1], 'base', ARGV[4])
redis.call('HDEL', KEYS[1], ARGV[1])
redis.call('ZREM', KEYS[2], ARGV[1])
return 1
