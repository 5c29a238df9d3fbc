-- A worker's moments into `base`, and its field away.
--
-- KEYS  1 moments  2 workers  3 merged
-- ARGV  1 worker  2 SHA-1 of its field  3 SHA-1 of base, or ""  4 the new base
--       5 how long to remember with which sums it was merged, ms, or 0
-- Races met here: the worker lives and has written since, or somebody else has merged. The sums
-- were made outside, of values that no longer stand: nothing is done. A worker that is cut off may
-- have written without being told; when it is back, it must know whether that went into the base.

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
if ARGV[5] ~= '0' then
  redis.call('SET', KEYS[3], ARGV[2], 'PX', ARGV[5])
end
return 1
