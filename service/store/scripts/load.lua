-- All that a worker starts from, at one instant.
--
-- KEYS  1 config  2 meta  3 moments  4 model
-- Returns {config or false, meta, moments, model}, the last three as field, value, field, value…

return {
  redis.call('GET', KEYS[1]),
  redis.call('HGETALL', KEYS[2]),
  redis.call('HGETALL', KEYS[3]),
  redis.call('HGETALL', KEYS[4]),
}
