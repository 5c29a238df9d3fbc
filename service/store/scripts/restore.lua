-- The last step of an import: its log and its pending decisions are in place, now it becomes a
-- learner.
--
-- KEYS  1 config  2 meta  3 moments  4 model
-- ARGV  1 config  2 moments  3 number of meta fields, then field, value each;
--       then field, value per model field
-- Returns 1, or 0 if a learner was made meanwhile (nothing is done)

if redis.call('EXISTS', KEYS[1]) == 1 then
  return 0
end
redis.call('SET', KEYS[1], ARGV[1])
redis.call('HSET', KEYS[3], 'base', ARGV[2])
local arg = 4
for _ = 1, tonumber(ARGV[3]) do
  redis.call('HSET', KEYS[2], ARGV[arg], ARGV[arg + 1])
  arg = arg + 2
end
while ARGV[arg] do
  redis.call('HSET', KEYS[4], ARGV[arg], ARGV[arg + 1])
  arg = arg + 2
end
return 1
