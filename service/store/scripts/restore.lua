-- The last step of an import: its log and its decisions lie ready, now they become the learner.
--
-- KEYS  1 config  2 meta  3 moments  4 workers  5 due  6 rewards  7 model  8 recent
--       9 timeline  10 explained  11 their order  12 due lying ready  13 rewards lying ready
-- ARGV  1 config  2 moments  3 number of meta fields  4 number of model fields
--       5 number of recent event ids; then field, value each; then the event ids, newest first
-- Races met here: workers that serve the learner. Until this step they serve the old one, after it
-- theirs is another birth; there is nothing between.

for i = 2, 11 do
  redis.call('UNLINK', KEYS[i])
end
redis.call('SET', KEYS[1], ARGV[1])
redis.call('HSET', KEYS[3], 'base', ARGV[2])
local arg = 6
for _ = 1, tonumber(ARGV[3]) do
  redis.call('HSET', KEYS[2], ARGV[arg], ARGV[arg + 1])
  arg = arg + 2
end
for _ = 1, tonumber(ARGV[4]) do
  redis.call('HSET', KEYS[7], ARGV[arg], ARGV[arg + 1])
  arg = arg + 2
end
for _ = 1, tonumber(ARGV[5]) do
  redis.call('RPUSH', KEYS[8], ARGV[arg])
  arg = arg + 1
end
for from, to in pairs({[12] = 5, [13] = 6}) do
  if redis.call('EXISTS', KEYS[from]) == 1 then
    redis.call('RENAME', KEYS[from], KEYS[to])
    redis.call('PERSIST', KEYS[to])
  end
end
return 1
