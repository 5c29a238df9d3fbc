-- Make a learner, or give an existing one a new configuration.
--
-- KEYS  1 config  2 meta, then all other keys of its state
-- ARGV  1 the configuration it must have now, or "" for none  2 the new one
--       3 born, if made or born again  4 1 if it must be born again, for another shape
-- Returns 1 if made, 0 if changed, -1 if somebody else was faster (nothing is done)
-- Races met here: two that configure, and rounds played while the shape is about to change.

local now = redis.call('GET', KEYS[1])
if (now or '') ~= ARGV[1] then
  return -1
end
if now and ARGV[4] == '1' and tonumber(redis.call('HGET', KEYS[2], 'rounds') or '0') > 0 then
  return -1
end
redis.call('SET', KEYS[1], ARGV[2])
if now and ARGV[4] == '0' then
  redis.call('HINCRBY', KEYS[2], 'configured', 1)
  return 0
end
for i = 2, #KEYS do
  redis.call('UNLINK', KEYS[i])
end
redis.call('HSET', KEYS[2], 'born', ARGV[3])
return now and 0 or 1
