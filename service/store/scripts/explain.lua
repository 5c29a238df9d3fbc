-- Keep what the arms of some decisions were worth; the oldest make room.
--
-- KEYS  1 meta  2 explained  3 their order
-- ARGV  1 born  2 how many to keep; then event id, explanation each, oldest first
-- Returns 1, or 0 for another birth
-- Race met here: a learner reset meanwhile (born differs: nothing is done).

if redis.call('HGET', KEYS[1], 'born') ~= ARGV[1] then
  return 0
end
for i = 3, #ARGV, 2 do
  if redis.call('HSET', KEYS[2], ARGV[i], ARGV[i + 1]) == 1 then
    redis.call('LPUSH', KEYS[3], ARGV[i])
  end
end
while redis.call('LLEN', KEYS[3]) > tonumber(ARGV[2]) do
  redis.call('HDEL', KEYS[2], redis.call('RPOP', KEYS[3]))
end
return 1
